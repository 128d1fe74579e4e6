from django.contrib.auth.models import User
from django.test import TestCase

from shop import customers


class Customers(TestCase):
    def test_are_counted(self):
        User.objects.create(username="ada")
        self.assertEqual(customers.count(), 1)
