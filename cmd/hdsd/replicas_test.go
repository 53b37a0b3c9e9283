package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

// threeReplicas is the answer of the first of three replicas. The third is gone.
func threeReplicas() *hdsdv1.ListReplicasResponse {
	all := []*hdsdv1.Replica{
		{Id: "hdsd-eu-central-1a", Self: true, Connected: true, Address: "192.168.100.101:18100", Version: "1.2.3-rc.1", Checkers: 1200, DataPlanes: 12000, Position: 4711, LagMillis: 3, Since: timestamppb.New(noon)},
		{Id: "hdsd-eu-central-1b", Leader: true, Connected: true, Address: "192.168.100.102:18100", Version: "1.2.3-rc.1", Checkers: 2, Position: 4712, Since: timestamppb.New(noon)},
		{Id: "hdsd-eu-central-1c", Address: "192.168.100.103:18100", Position: 10000, LagMillis: 60000, Since: timestamppb.New(noon.Add(-time.Hour))},
	}
	return &hdsdv1.ListReplicasResponse{Replicas: all, Epoch: 42}
}

func TestReplicasFitOn80Columns(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	f := newFake()
	f.replicas = threeReplicas()
	address := serveFake(t, f)
	code, out, errors := hdsd(t, "replicas", "--server", address)
	if code != exitDone || strings.Count(out, "\n") != 4 || !strings.Contains(errors, "hdsd-eu-central-1a answers; hdsd-eu-central-1b leads, epoch 42") {
		t.Errorf("exit status %d\n%s%s", code, out, errors)
	}
	for line := range strings.Lines(out + errors) {
		if table.TextWidth(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("a line of %d columns: %s", table.TextWidth(line)-1, line)
		}
	}
	for _, want := range []string{"ID", "LEADER", "CONNECTED", "CHECKERS", "PLANES", "SINCE", "60000 ms"} {
		if !strings.Contains(out, want) {
			t.Errorf("without %q:\n%s", want, out)
		}
	}
	_, out, _ = hdsd(t, "replicas", "-o", "wide", "--server", address)
	for _, want := range []string{"SELF", "ADDRESS", "192.168.100.103:18100", "POSITION", "4711"} {
		if !strings.Contains(out, want) {
			t.Errorf("-o wide is without %q:\n%s", want, out)
		}
	}
	if _, out, _ = hdsd(t, "replicas", "--unhealthy", "--server", address); !strings.Contains(out, "1c") || strings.Contains(out, "1a") {
		t.Errorf("--unhealthy shows\n%s", out)
	}
	if code, _, _ := hdsd(t, "replicas", "--locality", "eu", "--server", address); code != exitUsage {
		t.Errorf("--locality has the exit status %d", code)
	}
}

// TestSilentReplicas have no figures.
func TestSilentReplicas(t *testing.T) {
	f := newFake()
	f.replicas = threeReplicas()
	f.replicas.Replicas[2] = &hdsdv1.Replica{Id: "hdsd-eu-central-1c"}
	_, out, _ := hdsd(t, "replicas", "--server", serveFake(t, f))
	lines := strings.Split(out, "\n")
	if len(lines) != 5 || strings.Contains(lines[3], "0") || !strings.Contains(lines[1]+lines[2], "0 ms") {
		t.Errorf("\n%s", out)
	}
}

// TestReplicasForPrograms is one object with the epoch, where 64-bit integers are texts.
func TestReplicasForPrograms(t *testing.T) {
	f := newFake()
	f.replicas = threeReplicas()
	code, out, errors := hdsd(t, "replicas", "-o", "json", "--server", serveFake(t, f))
	want := `{"id":"hdsd-eu-central-1a","self":true,"leader":false,"connected":true,"address":"192.168.100.101:18100","version":"1.2.3-rc.1","checkers":1200,"dataPlanes":12000,"position":"4711","lagMillis":3,"since":"2026-01-02T12:00:00.345Z"}`
	if code != exitDone || strings.Count(out, "\n") != 1 || !strings.Contains(out, want) || !strings.Contains(out, `"epoch":"42"`) {
		t.Errorf("exit status %d, %s\n%s", code, errors, out)
	}
}

func TestReplicasWithoutLeader(t *testing.T) {
	f := newFake()
	f.replicas = threeReplicas()
	f.replicas.Replicas[1].Leader, f.replicas.Epoch = false, 0
	if _, _, errors := hdsd(t, "replicas", "--server", serveFake(t, f)); !strings.Contains(errors, "NO LEADER") {
		t.Error(errors)
	}
}

func TestReplicasOfACoordinatorAlone(t *testing.T) {
	code, out, errors := hdsd(t, "replicas", "--server", serveFake(t, newFake()))
	if code != exitDone || strings.Count(out, "\n") != 2 || !strings.Contains(errors, "this coordinator is alone") || !strings.Contains(errors, "'replication'") {
		t.Errorf("exit status %d\n%s%s", code, out, errors)
	}
}

// TestTheReplicaOfAStream is in tables and descriptions where there are several replicas.
func TestTheReplicaOfAStream(t *testing.T) {
	commands := []string{"checkers", "clients", "describe checker checker-1", "describe client dp-1"}
	for _, replica := range []*string{nil, new("hdsd-7")} {
		f := newFake()
		f.replica = replica
		address := serveFake(t, f)
		for _, command := range commands {
			code, out, errors := hdsd(t, append(strings.Fields(command), "--server", address)...)
			if code != exitDone || strings.Contains(out, "hdsd-7") != (replica != nil) || strings.Contains(strings.ToLower(out), "replica") != (replica != nil) {
				t.Errorf("%s with %v: exit status %d, %s\n%s", command, replica, code, errors, out)
			}
		}
	}
}
