package main

import (
	"encoding/json"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

func TestDescribe(t *testing.T) {
	f := newFake()
	f.endpoints[1].Zones = []*hdsdv1.ZoneHealth{{Region: "eu", Zone: "a", Health: corev3.HealthStatus_UNHEALTHY, Down: 2}}
	f.endpoints[1].Override = &hdsdv1.Override{Cluster: "web", Address: "10.0.0.2:8080", Health: corev3.HealthStatus_UNHEALTHY, Reason: "it burns", Author: "ann@here", Since: timestamppb.New(noon)}
	f.endpoints[1].Voted, f.endpoints[1].VotedReason = corev3.HealthStatus_TIMEOUT.Enum(), new("2 of 3 checkers say TIMEOUT")
	address := serveFake(t, f)
	for _, args := range [][]string{
		{"cluster", "web"}, {"cluster", "db"}, {"endpoint", "web", "10.0.0.2:8080"}, {"endpoint", "web", "10.0.0.1:8080"}, {"checker", "checker-1"}, {"checker", "checker-2"},
		{"client", "dp-1"}, {"client", "dp-2"}, {"incident", "dkz1x"},
	} {
		ask := append(append([]string{"describe"}, args...), "--server", address)
		status, out, errors := hdsd(t, ask...)
		if status != exitDone || errors != "" {
			t.Errorf("%v: exit status %d, %s", args, status, errors)
		}
		name := "describe-" + strings.NewReplacer(":", "-", "/", "-").Replace(strings.Join(args, "-"))
		golden(t, name+".txt", out)
		next := 0
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if _, command, is := strings.Cut(line, "hdsd "); is && len(line) > sheetLabel && line[sheetLabel:] == "hdsd "+command {
				next++
			} else if table.TextWidth(line) > 80 {
				t.Errorf("%v: longer than 80: %s", args, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%v: a line ends with spaces: %q", args, line)
			}
		}
		if next == 0 {
			t.Errorf("%v says nothing of how to go on:\n%s", args, out)
		}
		var object map[string]any
		_, out, errors = hdsd(t, append(ask, "-o", "json")...)
		if err := json.Unmarshal([]byte(out), &object); err != nil || errors != "" || object["commands"] == nil || strings.Count(out, "\n") != 1 {
			t.Errorf("%v as json: %v, %s: %s", args, err, errors, out)
		}
	}
}

// TestDescribeWhatIsNotPublished: an endpoint that clients would refuse is not said to be published.
func TestDescribeWhatIsNotPublished(t *testing.T) {
	f := newFake()
	f.endpoints[2].Published, f.endpoints[2].Reason = nil, "not published, since clients refuse all that comes with it: it has a name"
	_, out, _ := hdsd(t, "describe", "endpoint", "web", "10.0.0.3:8080", "--server", serveFake(t, f))
	if !strings.Contains(out, "published    no, see the reason\n") {
		t.Errorf("describe says:\n%s", out)
	}
}

// TestDescribeWhatIsNotThere fails, and says what there is.
func TestDescribeWhatIsNotThere(t *testing.T) {
	f := newFake()
	f.gone = "10.0.0.9:8080"
	address := serveFake(t, f)
	for args, want := range map[string]string{
		"cluster wbe":                "did you mean web?",
		"cluster past":               "its past: hdsd history past",
		"endpoint wbe 10.0.0.1:8080": "did you mean web?",
		"endpoint web 10.0.0.1:80":   "no such endpoint in web; it has 10.0.0.1:8080",
		"endpoint web 10.0.0.9:8080": "it had one: hdsd history web 10.0.0.9:8080",
		"checker checker-9":          "did you mean checker-1 or checker-2?",
		"client dp-9":                "did you mean dp-1 or dp-2?",
		"incident nope":              "hdsd incidents",
	} {
		status, out, errors := hdsd(t, append(append([]string{"describe"}, strings.Fields(args)...), "--server", address)...)
		if status != exitFailed || out != "" || !strings.Contains(errors, want) {
			t.Errorf("%s: exit status %d, %q, %s", args, status, out, errors)
		}
	}
	for args, want := range map[string]string{
		"": "name what to describe", "clutser web": "did you mean cluster?", "cluster": "describe cluster takes NAME", "endpoint web": "CLUSTER ADDRESS", "cluster web -o csv": "want table or json",
	} {
		if status, _, errors := hdsd(t, append([]string{"describe"}, strings.Fields(args)...)...); status != exitUsage || !strings.Contains(errors, want) {
			t.Errorf("describe %s: exit status %d, %s", args, status, errors)
		}
	}
}

// TestListsAreNarrowed by the coordinator or here, or say why they cannot be.
func TestListsAreNarrowed(t *testing.T) {
	f := newFake()
	f.endpoints[0].Observations = votes()
	address := serveFake(t, f)
	rows := func(args ...string) (int, int, string) {
		status, out, errors := hdsd(t, append(args, "--server", address, "-o", "json")...)
		return status, strings.Count(out, "\n"), errors
	}
	for args, want := range map[string]int{
		"endpoints --unhealthy": 2, "endpoints --locality eu/a": 3, "endpoints --locality eu/b": 0, "checkers --unhealthy": 1, "checkers --locality eu/a": 1,
		"clients --unhealthy": 2, "incidents --unhealthy": 1, "incidents --locality /b": 1, "incidents --locality eu": 3, "availability --unhealthy": 1, "availability --locality /a": 1,
		"endpoints --checker checker-1": 2, "endpoints --checker nobody": 0, "watch --checker checker-1": 3, "watch --checker nobody": 0,
		"availability --checker checker-1": 1, "availability --checker nobody": 0, "availability --by checker --checker nobody": 0,
	} {
		if status, n, errors := rows(strings.Fields(args)...); status != exitDone || n != want {
			t.Errorf("%s: exit status %d, %d rows, want %d; %s", args, status, n, want, errors)
		}
	}
	f.watches = nil
	_, _, _ = rows("watch", "--unhealthy", "--locality", "eu")
	_, _, _ = rows("top", "--checker", "checker-1", "--locality", "eu")
	if r := f.transitions[len(f.transitions)-1]; r.GetChecker() != "checker-1" || r.GetLocality() != "eu" {
		t.Errorf("top asks %v", r)
	}
	f.transitions = f.transitions[:0]
	_, _, _ = rows("history", "--unhealthy", "--locality", "eu")
	if r := f.transitions[0]; !r.GetUnhealthy() || r.GetLocality() != "eu" {
		t.Errorf("history asks %v", r)
	}
	if r := f.watches[0]; !r.GetUnhealthy() || r.GetLocality() != "eu" {
		t.Errorf("watch asks %v", r)
	}
	for args, want := range map[string]string{
		"clients --locality eu": "clients have no locality", "audit --unhealthy": "hdsd history --unhealthy", "audit --locality eu": "hdsd history --locality",
		"override list --unhealthy": "hdsd endpoints --unhealthy", "source list --locality eu": "hdsd clusters --locality", "endpoints --locality a/b/c/d": "REGION/ZONE/SUB-ZONE",
		"availability --by cluster --locality eu": "--by zone", "availability --by zone --checker checker-1": "--by checker",
	} {
		if status, _, errors := rows(strings.Fields(args)...); status != exitUsage || !strings.Contains(errors, want) {
			t.Errorf("%s: exit status %d, %s", args, status, errors)
		}
	}
}
