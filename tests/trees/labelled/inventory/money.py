"""Amounts of money."""

import decimal
import locale


def grouped(number):
    """With the grouping and the decimal point of the current locale."""
    return locale.format_string("%.2f", number, grouping=True)


def rounded(amount):
    """To whole cents, in the current decimal context."""
    return decimal.Decimal(amount).quantize(decimal.Decimal("0.01"))


def tax(amount, rate=decimal.Decimal("0.19")):
    return decimal.Decimal(amount) * rate
