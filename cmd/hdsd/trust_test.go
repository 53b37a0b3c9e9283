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

func TestTrust(t *testing.T) {
	_, address := serveFreezable(t)
	const since = " since 2026-01-02T12:00:00.345Z by "
	for line, want := range map[string]string{
		"distrust checker-7 --reason why --author bob": "checker-7 is distrusted" + since + "bob: why\n",
		"trust checker-7 --reason why --author bob":    "checker-7 is trusted" + since + "bob: why\nit replaces: checker-7 is distrusted" + since + "ann@here: stuck\n",
		"judge checker-7": "has ended: checker-7 is trusted" + since + "ann@here: stuck\n",
		"judge checker-8": "nothing was said of checker-8: nothing has changed\n",
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
