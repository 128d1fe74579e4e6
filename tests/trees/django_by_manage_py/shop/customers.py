from django.contrib.auth.models import User


def count():
    return User.objects.count()
