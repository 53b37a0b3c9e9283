package coordinator

import (
	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
	"hdsd/source"
)

// admission returns the rules of a configuration that admit checkers.
func admission(c *configv1.Config) []hds.AdmitRule {
	var rules []hds.AdmitRule
	for _, said := range c.GetCheckers().GetAdmit() {
		addresses, err := config.Prefixes(said.GetAddresses())
		if err != nil {
			continue // only where nobody has validated the configuration
		}
		rule := hds.AdmitRule{Addresses: addresses}
		if glob := said.GetNodeIdGlob(); glob != "" {
			rule.NodeID = func(id string) bool { return source.Match(glob, id) }
		}
		rules = append(rules, rule)
	}
	return rules
}
