package catalog_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/aggregate"
	"hdsd/coordinator/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
)

func verdictOf(t *testing.T, text string) *configv1.Verdict {
	t.Helper()
	v := &configv1.Verdict{}
	if err := protojson.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRulesOfVerdicts: a policy's verdict completes the configuration's.
func TestRulesOfVerdicts(t *testing.T) {
	c := &configv1.Config{
		Verdict: verdictOf(t, `{"rule":"SCORE","degradedWhen":{"httpStatusCode":[429,{"start":500,"end":502}]},"staleness":"9s","warmUp":"3s",
			"doubt":{"disagreements":20},"damping":{"reuse":900},"massFailure":{}}`),
		Policies: []*configv1.Policy{
			{ClusterNameGlob: "none"},
			{ClusterNameGlob: "own", Verdict: verdictOf(t, `{"rule":"ANY","doubt":{"share":0.4},"damping":{"disabled":true},"massFailure":{"hold":"0s"}}`)},
			{ClusterNameGlob: "same", Verdict: verdictOf(t, `{"rule":"ALL"}`)},
		},
	}
	r := catalog.NewRules(c)
	var codes aggregate.Codes
	codes.Add(429, 429)
	codes.Add(500, 501)
	common := aggregate.Rule{
		Kind: aggregate.Score, DegradedWhen: codes, WarmUp: 3 * time.Second,
		Damping: aggregate.Damping{Suppress: 2000, Reuse: 900, HalfLife: 30}, MassHold: 10 * time.Second,
	}
	same, own := common, common
	same.Kind = aggregate.All
	own.Kind, own.Damping, own.MassHold = aggregate.Any, aggregate.Damping{}, 0
	own.Limits = aggregate.BeliefLimits{Staleness: 9 * time.Second, Doubt: aggregate.Doubt{Share: 0.4}.WithDefaults()}
	for name, want := range map[string]aggregate.Rule{"none": common, "other": common, "same": same, "own": own} {
		if got := r.For(&source.Cluster{Name: name}).Rule; got != want {
			if name == "own" {
				got.Limits.Doubt.ReleaseAfter, want.Limits.Doubt.ReleaseAfter = 0, 0 // by the interval of reports
			}
			if got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
	}
	trust := catalog.WithDefaults(r.Trust, time.Second)
	if trust.Staleness != 9*time.Second || trust.Doubt.Disagreements != 20 || trust.Doubt.ReleaseAfter != 3*time.Second {
		t.Errorf("for all: %+v", trust)
	}
}

func TestTheFirstPolicyDecidesOnTheMode(t *testing.T) {
	r := catalog.NewRules(&configv1.Config{Mode: configv1.Mode_SHADOW, Policies: []*configv1.Policy{
		{ClusterNameGlob: "a*", Redundancy: 5}, {ClusterNameGlob: "*b", Mode: configv1.Mode_PUBLISH.Enum()}, {ClusterNameGlob: "cb", Mode: configv1.Mode_SHADOW.Enum()},
	}})
	for name, want := range map[string]bool{"x": true, "ab": true, "cb": false, "b": false} {
		if got := r.For(&source.Cluster{Name: name}).Shadow; got != want {
			t.Errorf("%s is shadowed: %t", name, got)
		}
	}
}
