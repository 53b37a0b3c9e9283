package coordinator

import (
	"testing"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// TestAdmission covers several rules, of which one has to match.
func TestAdmission(t *testing.T) {
	rules := admission(&configv1.Config{Checkers: &configv1.Checkers{Admit: []*configv1.AdmitRule{
		{NodeIdGlob: "edge-*", Addresses: []string{"10.0.0.0/8", "2001:db8::1"}}, {NodeIdGlob: "far-?"}, {Addresses: []string{"nonsense"}},
	}}})
	if len(rules) != 2 {
		t.Fatalf("%d rules", len(rules))
	}
	if edge := rules[0]; !edge.NodeID("edge-1") || edge.NodeID("far-1") || len(edge.Addresses) != 2 || edge.Addresses[1].Bits() != 128 {
		t.Errorf("%+v", edge)
	}
	if far := rules[1]; !far.NodeID("far-1") || far.NodeID("far-10") || len(far.Addresses) != 0 {
		t.Errorf("%+v", far)
	}
	if len(admission(&configv1.Config{})) != 0 {
		t.Error("without admit, somebody is not admitted")
	}
}
