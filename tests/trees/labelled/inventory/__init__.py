"""What the tests call."""

from inventory.dates import age_in_days, best_before, clock_time, is_fresh, today, year
from inventory.money import grouped, rounded, tax
from inventory.places import config_folder, data, home_of, relative, root, scratch
from inventory.report import parser, table, wrapped
from inventory.stock import Item, OutOfStock, Shelf, count, label, reserve, total, warn_when_low
from inventory.unique import bucket, distinct, fingerprint, first
