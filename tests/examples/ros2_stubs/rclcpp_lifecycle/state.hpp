// Stub of rclcpp_lifecycle for compiling examples/ros2: names and signatures only.
#pragma once
namespace rclcpp_lifecycle
{
class State
{
};
}  // namespace rclcpp_lifecycle
