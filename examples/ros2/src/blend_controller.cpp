#include "blend_controller.hpp"

#include <cmath>
#include <limits>

namespace blend_controller
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

CallbackReturn BlendController::on_init()
{
  auto_declare<std::vector<std::string>>("observation", {});
  auto_declare<std::vector<std::string>>("action", {});
  auto_declare<std::string>("contract", "");
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration BlendController::command_interface_configuration() const
{
  return {interface_configuration_type::INDIVIDUAL, action_names_};
}

InterfaceConfiguration BlendController::state_interface_configuration() const
{
  return {interface_configuration_type::INDIVIDUAL, observation_names_};
}

CallbackReturn BlendController::on_configure(const rclcpp_lifecycle::State &)
{
  observation_names_ = get_node()->get_parameter("observation").as_string_array();
  action_names_ = get_node()->get_parameter("action").as_string_array();
  if (observation_names_.size() != BLEND_OBSERVATION_SIZE || action_names_.size() != BLEND_ACTION_SIZE) {
    return CallbackReturn::ERROR;  // the names must be those of contract.json
  }
  // Refuse an exported file that was not tested with this robot, or that does not compute here what it should.
  const std::string contract = get_node()->get_parameter("contract").as_string();
  if ((!contract.empty() && contract != blend_digest()) || blend_selfcheck() != 0) {
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn BlendController::on_activate(const rclcpp_lifecycle::State &)
{
  blend_init(state());
  acted_ = false;
  for (double & value : reference_interfaces_) {
    value = std::numeric_limits<double>::quiet_NaN();
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn BlendController::on_deactivate(const rclcpp_lifecycle::State &)
{
  blend_end_episode(state());
  return CallbackReturn::SUCCESS;
}

std::vector<hardware_interface::CommandInterface> BlendController::on_export_reference_interfaces()
{
  reference_interfaces_.resize(BLEND_OBJECTIVES, std::numeric_limits<double>::quiet_NaN());
  std::vector<hardware_interface::CommandInterface> exported;
  for (std::size_t k = 0; k < reference_interfaces_.size(); k++) {
    exported.emplace_back(get_node()->get_name(), "objective_" + std::to_string(k), &reference_interfaces_[k]);
  }
  return exported;
}

bool BlendController::on_set_chained_mode(bool) { return true; }

return_type BlendController::update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &)
{
  return return_type::OK;  // without a controller before it, there is no feedback: the blend decides and does not learn
}

return_type BlendController::update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &)
{
  if (acted_ && std::isfinite(reference_interfaces_[0])) {
    blend_observe(state(), reference_interfaces_.data());
  }
  for (std::size_t i = 0; i < observation_.size(); i++) {
    observation_[i] = state_interfaces_[i].get_value();
  }
  blend_act(state(), observation_.data(), action_.data());
  acted_ = true;
  for (std::size_t i = 0; i < action_.size(); i++) {
    command_interfaces_[i].set_value(action_[i]);
  }
  return return_type::OK;
}

}  // namespace blend_controller
