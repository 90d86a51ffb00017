"""The lidar of Safety Gym: a ring of bins around the robot."""

LIDAR_BINS = 16
LIDAR_RANGE = 3.0  # m
