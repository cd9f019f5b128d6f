"""Settings of Django's suite: two databases of the server at $PROGRAMS_SOCKET, through PyMySQL as so many run it."""

import os

import pymysql

pymysql.version_info = (2, 2, 7, "final", 0)   # what Django asks of mysqlclient, whose place it takes
pymysql.install_as_MySQLdb()


def database(name):
    test = {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_general_ci"}
    return {"ENGINE": "django.db.backends.mysql", "NAME": name, "USER": "root", "HOST": os.environ["PROGRAMS_SOCKET"],
            "OPTIONS": {"charset": "utf8mb4"}, "TEST": test}


DATABASES = {"default": database("django"), "other": database("django_other")}
SECRET_KEY = "none"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
