import unittest

import sums


class Sums(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(sums.add(1, 2), 3)
