package health

import "testing"

func TestFilter(t *testing.T) {
	in := Locality{Region: "eu", Zone: "a", SubZone: "r1"}
	for f, want := range map[Filter]string{
		{}:                              "UNKNOWN HEALTHY UNHEALTHY DRAINING TIMEOUT DEGRADED ",
		{Unhealthy: true}:               "UNKNOWN UNHEALTHY DRAINING TIMEOUT ",
		{Locality: Locality{Zone: "b"}}: "",
		{Locality: Locality{Region: "eu", Zone: "a"}, Unhealthy: true}: "UNKNOWN UNHEALTHY DRAINING TIMEOUT ",
		{Locality: Locality{Zone: "a"}}:                                "UNKNOWN HEALTHY UNHEALTHY DRAINING TIMEOUT DEGRADED ",
		{Locality: Locality{SubZone: "r2"}}:                            "",
	} {
		got := ""
		for s := Unknown; s.Valid(); s++ {
			if f.Has(in, s) {
				got += s.String() + " "
			}
		}
		if got != want || f.Any() != (f == Filter{}) {
			t.Errorf("%+v lets %q pass, want %q", f, got, want)
		}
	}
}
