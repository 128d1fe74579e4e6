from django.contrib.auth.models import User
from django.test import TestCase


class Customers(TestCase):
    def test_are_counted(self):
        User.objects.create(username="ada")
        self.assertEqual(User.objects.count(), 1)
