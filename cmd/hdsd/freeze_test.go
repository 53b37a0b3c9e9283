package main

import (
	"context"
	"os/user"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// fakeControl is a coordinator that can be frozen.
type fakeControl struct {
	hdsdv1.UnimplementedControlServer
	frozen *hdsdv1.FreezeState
	ended  string // who unfroze

	notDurable *string
	annotated  []*hdsdv1.AnnotateRequest

	trust   []*hdsdv1.Trust
	clock   *hdsdv1.ClockState
	set     *hdsdv1.SetOverrideRequest
	cleared *hdsdv1.ClearOverridesRequest
	audited *hdsdv1.ListAuditRequest
	decides int // endpoints that an override would
	panics  []string
}

func (f *fakeControl) Freeze(_ context.Context, r *hdsdv1.FreezeRequest) (*hdsdv1.FreezeResponse, error) {
	answer := &hdsdv1.FreezeResponse{Replaced: f.frozen, NotDurable: f.notDurable}
	f.frozen = &hdsdv1.FreezeState{Frozen: true, Reason: r.GetReason(), Author: r.GetAuthor(), Publish: r.GetPublish(), Since: timestamppb.New(noon)}
	answer.Freeze = f.frozen
	return answer, nil
}

func (f *fakeControl) Unfreeze(_ context.Context, r *hdsdv1.UnfreezeRequest) (*hdsdv1.UnfreezeResponse, error) {
	answer := &hdsdv1.UnfreezeResponse{Ended: f.frozen, NotDurable: f.notDurable}
	f.frozen, f.ended = nil, r.GetAuthor()
	return answer, nil
}

func (f *fakeControl) GetFreeze(context.Context, *hdsdv1.GetFreezeRequest) (*hdsdv1.FreezeState, error) {
	if f.frozen == nil {
		return &hdsdv1.FreezeState{}, nil
	}
	return proto.CloneOf(f.frozen), nil
}

// serveFreezable serves a fake that can be frozen until the test ends.
func serveFreezable(t *testing.T) (*fakeControl, string) {
	t.Helper()
	control := &fakeControl{}
	return control, serveOn(t, func(server *grpc.Server) {
		hdsdv1.RegisterQueryServer(server, newFake())
		hdsdv1.RegisterControlServer(server, control)
	})
}

func TestFreezeAndUnfreeze(t *testing.T) {
	control, address := serveFreezable(t)
	const line = "frozen since 2026-01-02T12:00:00.345Z by "
	const overrides = "overrides stay in force, and none expires before 'hdsd unfreeze'\n"
	steps := []struct {
		args []string
		want string
	}{
		{[]string{"freeze", "--show"}, "not frozen\n"},
		{[]string{"unfreeze"}, "was not frozen: nothing has changed\n"},
		{[]string{"freeze", "--reason", "moving", "--author", "alice"}, line + "alice: moving\ndata planes get what the sources say\n" + overrides},
		{
			[]string{"freeze", "--reason", "is it us?", "--author", "bob", "--publish", "held"},
			line + "bob: is it us?\ndata planes get the health as it stood then\n" + overrides + "it was frozen already, by alice: moving\n",
		},
		{[]string{"freeze", "--show"}, line + "bob: is it us?\ndata planes get the health as it stood then\n" + overrides},
		{[]string{"unfreeze", "--author", "carol"}, "verdicts are published again; was " + line + "bob: is it us?\n"},
	}
	for _, step := range steps {
		status, out, errors := hdsd(t, append(step.args, "--server", address)...)
		if status != exitDone || out != step.want || errors != "" {
			t.Errorf("hdsd %q: exit status %d, %q, %s; want %q", step.args, status, out, errors, step.want)
		}
	}
	if control.ended != "carol" {
		t.Errorf("%q unfroze", control.ended)
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, errors := hdsd(t, "freeze", "--reason", "x", "--server", address); !strings.HasPrefix(control.frozen.GetAuthor(), who.Username+"@") {
		t.Errorf("frozen by %q, want the user: %s", control.frozen.GetAuthor(), errors)
	}
}

// TestInForceNotDurable: what the disk does not take is done all the same, and said.
func TestInForceNotDurable(t *testing.T) {
	control, address := serveFreezable(t)
	control.notDurable = new("a restart undoes that: no space left")
	for _, args := range [][]string{{"freeze", "--reason", "moving"}, {"unfreeze"}} {
		status, out, _ := hdsd(t, append(args, "--server", address)...)
		if status != exitDone || !strings.HasSuffix(out, "\nin force, not durable: a restart undoes that: no space left\n") {
			t.Errorf("%v: exit status %d, %q", args, status, out)
		}
	}
}

func TestQueriesWarnOfAFreeze(t *testing.T) {
	control, address := serveFreezable(t)
	for _, frozen := range []bool{false, true} {
		want := ""
		if frozen {
			control.frozen = &hdsdv1.FreezeState{Frozen: true, Reason: "moving", Author: "alice", Since: timestamppb.New(noon)}
			want = "hdsd: frozen since 2026-01-02T12:00:00.345Z by alice: moving\n"
		}
		for _, name := range []string{"endpoints", "history", "incidents", "availability", "watch", "clusters", "checkers", "clients"} {
			status, out, errors := hdsd(t, name, "--server", address, "-o", "json")
			if status != exitDone || errors != want || strings.Contains(out, "frozen since") {
				t.Errorf("%s: exit status %d, %q on stderr, want %q", name, status, errors, want)
			}
		}
	}
}

func TestWrongFreezes(t *testing.T) {
	for line, want := range map[string]string{
		"freeze":                        "--reason TEXT is missing",
		"freeze now":                    "now",
		"freeze --reason x --publish y": "want sources or held",
		"freeze --reason x --tls-key y": "--tls-ca",
		"unfreeze now":                  "now",
	} {
		status, out, errors := hdsd(t, strings.Fields(line)...)
		if status != exitUsage || out != "" || !strings.Contains(errors, want) || strings.Count(errors, "\n") != 2 {
			t.Errorf("hdsd %s: exit status %d, %q, %q", line, status, out, errors)
		}
	}
	if status, _, errors := hdsd(t, "freeze", "--reason", "x", "--server", "127.0.0.1:1"); status != exitFailed || !strings.Contains(errors, "127.0.0.1:1") {
		t.Errorf("where nobody answers: exit status %d, %q", status, errors)
	}
}
