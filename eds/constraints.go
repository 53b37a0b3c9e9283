package eds

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// resourceName names a variant with constraints: zone and region are the requested ones, or
// absent. So a locator meets the constraints of exactly one variant, whichever zones exist.
func (s *slot) resourceName() *discoveryv3.ResourceName {
	constraints := absent(ZoneParameter)
	if s.variant != nil {
		zone, inRegion := zoneOf(s.choice())
		region := absent(RegionParameter)
		if inRegion {
			region = equals(RegionParameter, zone.Region)
		}
		constraints = &discoveryv3.DynamicParameterConstraints{
			Type: &discoveryv3.DynamicParameterConstraints_AndConstraints{
				AndConstraints: &discoveryv3.DynamicParameterConstraints_ConstraintList{
					Constraints: []*discoveryv3.DynamicParameterConstraints{equals(ZoneParameter, zone.Zone), region},
				},
			},
		}
	}
	return &discoveryv3.ResourceName{Name: s.name, DynamicParameterConstraints: constraints}
}

// equals matches parameters with this value.
func equals(key, value string) *discoveryv3.DynamicParameterConstraints {
	return single(&discoveryv3.DynamicParameterConstraints_SingleConstraint{
		Key: key, ConstraintType: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Value{Value: value},
	})
}

// absent matches parameters without this key.
func absent(key string) *discoveryv3.DynamicParameterConstraints {
	return &discoveryv3.DynamicParameterConstraints{
		Type: &discoveryv3.DynamicParameterConstraints_NotConstraints{
			NotConstraints: single(&discoveryv3.DynamicParameterConstraints_SingleConstraint{
				Key: key, ConstraintType: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists_{
					Exists: new(discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists),
				},
			}),
		},
	}
}

func single(c *discoveryv3.DynamicParameterConstraints_SingleConstraint) *discoveryv3.DynamicParameterConstraints {
	return &discoveryv3.DynamicParameterConstraints{Type: &discoveryv3.DynamicParameterConstraints_Constraint{Constraint: c}}
}

func appendResourceName(b []byte, number protowire.Number, s *slot) []byte {
	encoded, _ := proto.Marshal(s.resourceName()) // valid text, as of clients, gives no error
	return fields.AppendBytes(b, number, encoded)
}
