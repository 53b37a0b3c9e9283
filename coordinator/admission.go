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
	for _, admit := range c.GetCheckers().GetAdmit() {
		addresses, err := config.Prefixes(admit.GetAddresses())
		if err != nil {
			continue // the configuration was not validated
		}
		rule := hds.AdmitRule{Addresses: addresses}
		if glob := admit.GetNodeIdGlob(); glob != "" {
			rule.NodeID = func(id string) bool { return source.Match(glob, id) }
		}
		rules = append(rules, rule)
	}
	return rules
}
