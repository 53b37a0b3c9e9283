package rules

import (
	"fmt"
	"math"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"hdsd/internal/yamlpb"
)

// unusable returns the reasons why an Envoy refuses an assignment as a whole, beyond the rules
// of its message.
func unusable(a *endpointv3.ClusterLoadAssignment) []yamlpb.Violation {
	var violations []yamlpb.Violation
	drops := a.GetPolicy().GetDropOverloads()
	if len(drops) > 1 {
		violations = append(violations, yamlpb.Violation{Field: "policy.drop_overloads", Reason: "has more than one category: give one"})
	}
	for i, d := range drops {
		if p := d.GetDropPercentage(); uint64(p.GetNumerator()) > denominators[p.GetDenominator()] {
			violations = append(violations, yamlpb.Violation{Field: fmt.Sprintf("policy.drop_overloads[%d].drop_percentage", i), Reason: "is more than 100 %: lower the numerator"})
		}
	}
	if Overweight(a) {
		violations = append(violations, yamlpb.Violation{Field: "endpoints", Reason: fmt.Sprintf(
			"have a sum of weights above %d, in a locality or of the localities of a priority: lower them", uint32(math.MaxUint32))})
	}
	return violations
}

var denominators = map[typev3.FractionalPercent_DenominatorType]uint64{
	typev3.FractionalPercent_HUNDRED: 100, typev3.FractionalPercent_TEN_THOUSAND: 10_000, typev3.FractionalPercent_MILLION: 1_000_000,
}

// Overweight reports whether an Envoy refuses an assignment because of the sum of the weights of
// endpoints in a locality, or of the localities of a priority.
func Overweight(a *endpointv3.ClusterLoadAssignment) bool {
	priorities := map[uint32]uint64{}
	for _, group := range a.GetEndpoints() {
		weight := uint64(0)
		for _, e := range group.GetLbEndpoints() {
			weight++ // of one without a weight
			if value := e.GetLoadBalancingWeight(); value != nil {
				weight += uint64(value.GetValue()) - 1
			}
		}
		priorities[group.GetPriority()] += uint64(group.GetLoadBalancingWeight().GetValue())
		if weight > math.MaxUint32 || priorities[group.GetPriority()] > math.MaxUint32 {
			return true
		}
	}
	return false
}
