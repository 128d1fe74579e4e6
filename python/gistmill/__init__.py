"""The judge of a gistmill dataset, for programs that train or evaluate.

    from gistmill import Judge

    with Judge("output/mine/2026.11") as judge:
        score = judge.score(instance_id, text)
        print(score.reward, score.failure)

A judge runs ``gistmill serve --stdio`` in the background, starts it again where it dies, and hands in again what had no
answer. It needs nothing but the standard library, and is safe to use from several threads and from asyncio.
"""

from ._judge import BadRequest, Judge, JudgeError, Late, Lost, Score, UnknownInstance

__all__ = ["BadRequest", "Judge", "JudgeError", "Late", "Lost", "Score", "UnknownInstance"]
