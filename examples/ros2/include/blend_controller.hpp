// A chainable ros2_control controller that drives by an exported blend (blend.c, blend.h).
//
// State interfaces: the entries of the observation, in the order of contract.json. Command interfaces: the entries of the
// action. Reference interfaces: the objectives of the last control step, as maximised, written by the controller before it
// in the chain; they are the feedback that the blend learns from.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "blend.h"
#include "controller_interface/chainable_controller_interface.hpp"
#include "hardware_interface/handle.hpp"
#include "rclcpp/duration.hpp"
#include "rclcpp/time.hpp"
#include "rclcpp_lifecycle/state.hpp"

namespace blend_controller
{

class BlendController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous) override;

protected:
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override;
  bool on_set_chained_mode(bool chained_mode) override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  blend_state * state() { return reinterpret_cast<blend_state *>(&memory_); }

  std::vector<std::string> observation_names_;
  std::vector<std::string> action_names_;
  blend_memory memory_{};
  std::array<double, BLEND_OBSERVATION_SIZE> observation_{};
  std::array<double, BLEND_ACTION_SIZE> action_{};
  bool acted_ = false;
};

}  // namespace blend_controller
