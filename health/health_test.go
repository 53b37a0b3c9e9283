package health

import (
	"testing"

	"pgregory.net/rapid"
)

// The database and stored plans name endpoints by their hashes. A release that
// computes others loses everything that was stored.
func TestHashesNeverChange(t *testing.T) {
	e := Endpoint{Cluster: "web", Locality: Locality{Region: "eu", Zone: "a", SubZone: "rack-1"}, Address: "10.0.0.1:80"}
	if got := e.Hash(); got != 0xeefe4447815f03e5 {
		t.Errorf("the endpoint's hash is %#x", uint64(got))
	}
	if got := ClusterHash("web"); got != 0xe2163fd588f7993c {
		t.Errorf("the cluster's hash is %#x", uint64(got))
	}
}

func TestHashesSeparateFields(t *testing.T) {
	a := Endpoint{Cluster: "ab", Locality: Locality{Region: "c"}}
	b := Endpoint{Cluster: "a", Locality: Locality{Region: "bc"}}
	if a.Hash() == b.Hash() {
		t.Error("two different endpoints have the same hash")
	}
}

func TestWorse(t *testing.T) {
	order := []Status{Healthy, Unknown, Degraded, Draining, Timeout, Unhealthy}
	for i, better := range order {
		for _, worse := range order[i:] {
			if Worse(better, worse) != worse || Worse(worse, better) != worse {
				t.Errorf("the worse of %s and %s is %s, or %s", better, worse, Worse(better, worse), Worse(worse, better))
			}
		}
	}
}

func TestReach(t *testing.T) {
	c := &Checker{Locality: Locality{Region: "eu", Zone: "a"}, Metadata: map[string]string{"vpc": "blue"}}
	cases := []struct {
		name  string
		reach *Reach
		want  bool
	}{
		{"all", nil, true},
		{"none named", &Reach{}, true},
		{"its region", &Reach{Localities: []Locality{{Region: "us"}, {Region: "eu"}}}, true},
		{"another zone", &Reach{Localities: []Locality{{Region: "eu", Zone: "b"}}}, false},
		{"its metadata", &Reach{Metadata: map[string]string{"vpc": "blue"}}, true},
		{"other metadata", &Reach{Metadata: map[string]string{"vpc": "red"}}, false},
		{"metadata it lacks", &Reach{Metadata: map[string]string{"rack": ""}}, false},
		{"both, one wrong", &Reach{Localities: []Locality{{Region: "eu"}}, Metadata: map[string]string{"vpc": "red"}}, false},
	}
	for _, test := range cases {
		if got := test.reach.Includes(c); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

func TestCompareOrdersEndpoints(t *testing.T) {
	text := rapid.StringMatching(`[ab]{0,2}`)
	endpoint := rapid.Custom(func(t *rapid.T) Endpoint {
		return Endpoint{text.Draw(t, "cluster"), Locality{text.Draw(t, "region"), text.Draw(t, "zone"), text.Draw(t, "sub-zone")}, text.Draw(t, "address")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := endpoint.Draw(t, "a"), endpoint.Draw(t, "b")
		if (a.Compare(b) == 0) != (a == b) || a.Compare(b) != -b.Compare(a) {
			t.Fatalf("%+v and %+v: %d and %d", a, b, a.Compare(b), b.Compare(a))
		}
	})
}
