package main

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func aTrust(word hdsdv1.Trust_Word) *hdsdv1.Trust {
	return &hdsdv1.Trust{Checker: "checker-7", Word: word, Reason: "stuck", Author: "ann@here", Since: timestamppb.New(noon)}
}

// SetTrust takes what is asked for, at noon.
func (f *fakeControl) SetTrust(_ context.Context, r *hdsdv1.SetTrustRequest) (*hdsdv1.SetTrustResponse, error) {
	now := &hdsdv1.Trust{Checker: r.GetChecker(), Word: r.GetWord(), Reason: r.GetReason(), Author: r.GetAuthor(), Since: timestamppb.New(noon)}
	answer := &hdsdv1.SetTrustResponse{Trust: now}
	if r.GetWord() == hdsdv1.Trust_TRUSTED {
		answer.Replaced = aTrust(hdsdv1.Trust_DISTRUSTED)
	}
	return answer, nil
}

func (f *fakeControl) ClearTrust(_ context.Context, r *hdsdv1.ClearTrustRequest) (*hdsdv1.ClearTrustResponse, error) {
	if r.GetChecker() != "checker-7" {
		return &hdsdv1.ClearTrustResponse{}, nil
	}
	return &hdsdv1.ClearTrustResponse{Ended: aTrust(hdsdv1.Trust_TRUSTED)}, nil
}

func (f *fakeControl) ListTrust(context.Context, *hdsdv1.ListTrustRequest) (*hdsdv1.ListTrustResponse, error) {
	return &hdsdv1.ListTrustResponse{Trust: f.trust}, nil
}

// TestTrustOfAnUnknownChecker: it is taken, and everyone is told.
func TestTrustOfAnUnknownChecker(t *testing.T) {
	control, address := serveFreezable(t)
	there := aTrust(hdsdv1.Trust_DISTRUSTED)
	there.Checker = "checker-2"
	control.trust = []*hdsdv1.Trust{there, aTrust(hdsdv1.Trust_DISTRUSTED)}
	for id, want := range map[string]string{
		"checker-1": "",
		"cheker-1":  "hdsd: no checker \"cheker-1\" is known now: did you mean checker-1? ('hdsd checkers judge cheker-1' takes it back)\n",
		"a-7":       "hdsd: no checker \"a-7\" is known now ('hdsd checkers judge a-7' takes it back)\n",
	} {
		exit, out, errors := hdsd(t, "checkers", "distrust", id, "--reason", "typo", "--server", address)
		if exit != exitDone || !strings.HasPrefix(out, id+" is distrusted since ") || errors != want {
			t.Errorf("%s: %d, %q, %q; want %q", id, exit, out, errors, want)
		}
	}
	const note = "hdsd: not known now: checker-7 is distrusted since 2026-01-02T12:00:00.345Z by ann@here: stuck\n"
	for limit, want := range map[string]string{"0": note, "1": ""} { // who is not shown may be known
		if exit, out, errors := hdsd(t, "checkers", "--limit", limit, "--server", address); exit != exitDone || out == "" || errors != want {
			t.Errorf("--limit %s: %d, %q, %q; want %q", limit, exit, out, errors, want)
		}
	}
}

func TestTrust(t *testing.T) {
	_, address := serveFreezable(t)
	const since = " since 2026-01-02T12:00:00.345Z by "
	for line, want := range map[string]string{
		"distrust checker-7 --reason why --author bob": "checker-7 is distrusted" + since + "bob: why\n",
		"trust checker-7 --reason why --author bob":    "checker-7 is trusted" + since + "bob: why\nit replaces: checker-7 is distrusted" + since + "ann@here: stuck\n",
		"judge checker-7": "cleared: checker-7 is trusted" + since + "ann@here: stuck\n",
		"judge checker-8": "no trust is set for checker-8: nothing has changed\n",
	} {
		exit, out, errors := hdsd(t, append(append([]string{"checkers"}, strings.Fields(line)...), "--server", address)...)
		if exit != 0 || out != want {
			t.Errorf("%s: %d, %q, %q; want %q", line, exit, out, errors, want)
		}
	}
}

func TestWrongTrust(t *testing.T) {
	for line, says := range map[string]string{
		"distrust":             "name one checker by its id",
		"trust a b --reason x": "name one checker by its id",
		"trust checker-7":      "--reason TEXT is missing",
		"judge":                "name one checker by its id",
		"nonsense":             "nonsense",
	} {
		if exit, _, errors := hdsd(t, append([]string{"checkers"}, strings.Fields(line)...)...); exit != 2 || !strings.Contains(errors, says) {
			t.Errorf("%s: %d, %q", line, exit, errors)
		}
	}
}
