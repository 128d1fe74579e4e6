from django.http import JsonResponse
from django.urls import path


def stock(request):
    from django.contrib.auth.models import User

    return JsonResponse({"customers": User.objects.count()})


urlpatterns = [path("stock/", stock)]
