import pytest


@pytest.mark.django_db
def test_counts_customers(client):
    from django.contrib.auth.models import User

    User.objects.create(username="ada")
    assert client.get("/stock/").json() == {"customers": 1}
