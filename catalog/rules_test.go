package catalog_test

import (
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/aggregate"
	"hdsd/catalog"
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
		Damping: aggregate.Damping{Suppress: 2000, Reuse: 900, HalfLife: 30}, MassHold: 10 * time.Second, QuorumHold: 10 * time.Minute,
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

// TestDegradedByDefault: where the code alone tells that a probe passed, UNHEALTHY with
// such a code means DEGRADED, unless the configuration says otherwise.
func TestDegradedByDefault(t *testing.T) {
	r := catalog.NewRules(&configv1.Config{Policies: []*configv1.Policy{
		{ClusterNameGlob: "never", Verdict: verdictOf(t, `{"degradedWhen":{}}`)},
		{ClusterNameGlob: "own", Verdict: verdictOf(t, `{"degradedWhen":{"httpStatusCode":[429]}}`)},
		{ClusterNameGlob: "other", Verdict: verdictOf(t, `{"rule":"ANY"}`)},
	}})
	check := func(text string) *corev3.HealthCheck {
		h := &corev3.HealthCheck{}
		if err := protojson.Unmarshal([]byte(text), h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	const plain, ranges = `{"httpHealthCheck":{"path":"/"}}`, `{"httpHealthCheck":{"path":"/","expectedStatuses":[{"start":200,"end":202},{"start":404,"end":405}]}}`
	for _, test := range []struct {
		name, cluster string
		checks        []string
		degraded      []uint16
		passing       []uint16
	}{
		{"one HTTP check", "web", []string{plain}, []uint16{200}, []uint16{200}},
		{"with expected statuses", "web", []string{ranges}, []uint16{200, 201, 404}, []uint16{200, 201, 404}},
		{"a policy that says nothing of it", "other", []string{plain}, []uint16{200}, []uint16{200}},
		{"a policy that says never", "never", []string{plain}, nil, []uint16{200}},
		{"a policy with codes", "own", []string{plain}, []uint16{429}, []uint16{200}},
		{"a body that may not match", "web", []string{`{"httpHealthCheck":{"path":"/","receive":[{"text":"00"}]}}`}, nil, nil},
		{"a service that may not match", "web", []string{`{"httpHealthCheck":{"path":"/","serviceNameMatcher":{"exact":"x"}}}`}, nil, nil},
		{"two checks", "web", []string{plain, plain}, nil, nil},
		{"TCP", "web", []string{`{"tcpHealthCheck":{}}`}, nil, nil},
		{"none", "web", nil, nil, nil},
	} {
		c := &source.Cluster{Name: test.cluster}
		for _, text := range test.checks {
			c.HealthChecks = append(c.HealthChecks, check(text))
		}
		rule := r.For(c).Rule
		for code := range uint16(aggregate.MaxCode) {
			if rule.DegradedWhen.Has(code) != slices.Contains(test.degraded, code) || rule.Passing.Has(code) != slices.Contains(test.passing, code) {
				t.Errorf("%s: %d counts as DEGRADED: %t, passes: %t", test.name, code, rule.DegradedWhen.Has(code), rule.Passing.Has(code))
			}
		}
	}
}

// TestRateIsThatOfTheIntervalsInUse: the plan counts on as many checks as are made.
func TestRateIsThatOfTheIntervalsInUse(t *testing.T) {
	r := catalog.NewRules(&configv1.Config{Policies: []*configv1.Policy{{ClusterNameGlob: "own", NoTrafficIntervals: true}}})
	for _, test := range []struct {
		cluster, intervals string
		rate               int64
	}{
		{"web", `"noTrafficInterval":"20s","noTrafficHealthyInterval":"10s"`, 1000},
		{"own", `"noTrafficInterval":"20s","noTrafficHealthyInterval":"10s"`, 100},
		{"own", `"noTrafficInterval":"20s"`, 50},
		{"own", `"unhealthyInterval":"5s"`, 1000},
	} {
		check := &corev3.HealthCheck{}
		if err := protojson.Unmarshal([]byte(`{"timeout":"1s","interval":"1s",`+test.intervals+`,"healthyThreshold":1,"unhealthyThreshold":1,"tcpHealthCheck":{}}`), check); err != nil {
			t.Fatal(err)
		}
		k := catalog.Prepare(&source.Cluster{Name: test.cluster, HealthChecks: []*corev3.HealthCheck{check}}, r)
		if k.Rate != test.rate || k.Checked.Timing.Interval.Seconds()*float64(k.Rate) < 1000 {
			t.Errorf("%s with %s: %d checks in 1,000 s, rounds of %s", test.cluster, test.intervals, k.Rate, k.Checked.Timing.Interval)
		}
	}
}

// TestRulesAreForTheNameOutside: a policy for a cluster is for all its versions.
func TestRulesAreForTheNameOutside(t *testing.T) {
	r := catalog.NewRules(&configv1.Config{Policies: []*configv1.Policy{{ClusterNameGlob: "web", Redundancy: 7}}})
	from := &source.Cluster{Name: "web#2", ServiceName: "web#2", Config: &clusterv3.Cluster{Name: "web"}}
	if got := r.For(from).Redundancy; got != 7 {
		t.Errorf("its redundancy is %d, want that of the policy", got)
	}
}
