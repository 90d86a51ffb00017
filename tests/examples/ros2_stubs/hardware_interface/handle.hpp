// Stub of ros2_control for compiling examples/ros2: names and signatures only.
#pragma once
#include <string>

namespace hardware_interface
{
class CommandInterface
{
public:
  CommandInterface(const std::string &, const std::string &, double * value) : value_(value) {}
  void set_value(double value) { *value_ = value; }

private:
  double * value_;
};

class LoanedStateInterface
{
public:
  double get_value() const { return 0.0; }
};

class LoanedCommandInterface
{
public:
  void set_value(double) {}
};
}  // namespace hardware_interface
