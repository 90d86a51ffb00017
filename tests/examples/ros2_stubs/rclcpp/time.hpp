// Stub of rclcpp for compiling examples/ros2: names and signatures only.
#pragma once
namespace rclcpp
{
class Time
{
};
}  // namespace rclcpp
