package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
)

func TestCompletionKnowsWhatTheCoordinatorKnows(t *testing.T) {
	address := serveFake(t, newFake())
	for args, want := range map[string]string{
		"endpoints --server %|":                "db\t9 of 12 healthy\nidle\t0 of 0 healthy\nplain\t0 of 3 healthy\nweb\t0 of 1 healthy\n",
		"history --server %|w":                 "web\t0 of 1 healthy\n",
		"watch --server %|zzz":                 "",
		"availability --server % web|":         "10.0.0.1:8080\tHEALTHY\n10.0.0.2:8080\tUNHEALTHY\n",
		"endpoints --server % web|10.0.0.2":    "10.0.0.2:8080\tUNHEALTHY\n",
		"endpoints --server % web|0.0.0":       "",
		"endpoints --server % nowhere|":        "",
		"endpoints --server % web 10.0.0.2:8|": "",
		"endpoints --server 127.0.0.1:1|":      "",
		"endpoints --server 127.0.0.1:1 web|":  "",
		"endpoints --tls-ca /none --server %|": "",
		"checkers distrust --server %|":        "checker-1\nchecker-2\n",
		"checkers trust --server %|checker-2":  "checker-2\n",
		"checkers trust --server %|2":          "",
		"checkers judge --server % checker-1|": "",
		"checkers judge --server 127.0.0.1:1|": "",
	} {
		before, begun, _ := strings.Cut(strings.ReplaceAll(args, "%", address), "|")
		status, out, errors := hdsd(t, append(append([]string{"__complete"}, strings.Fields(before)...), begun)...)
		if status != exitDone || out != want+":4\n" {
			t.Errorf("%s offers %q (exit status %d), want %q and no files; %s", args, out, status, want, errors)
		}
	}
}

// TestEveryCompletion holds what is offered for the arguments and each flag of
// each command to a file. The last line of an answer tells shells whether to
// offer files (:0), none (:4), some (:8) or folders (:16).
func TestEveryCompletion(t *testing.T) {
	t.Setenv("HDSD_SERVER", serveFake(t, newFake()))
	var got strings.Builder
	ask := func(command *cobra.Command, words ...string) {
		args := slices.Concat([]string{"__complete"}, strings.Fields(command.CommandPath())[1:], words)
		status, out, _ := hdsd(t, args...)
		if status != exitDone {
			t.Errorf("%q: exit status %d", args, status)
		}
		offers := strings.Split(strings.TrimSpace(out), "\n")
		for i, offer := range offers {
			offers[i], _, _ = strings.Cut(offer, "\t")
		}
		fmt.Fprintf(&got, "%s%s\n\t%s\n", command.CommandPath(), strings.TrimRight(" "+strings.Join(words, " "), " "), strings.Join(offers, " "))
	}
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		ask(command, "")
		ask(command, "web", "")
		ask(command, "web", "10.0.0.1:8080", "")
		command.Flags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" {
				ask(command, "--"+f.Name, "")
			}
		})
		for _, sub := range command.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(nil, nil))
	golden(t, "completions.txt", got.String())
}

// TestCompletionReturnsSoon completes from a server that answers
// no call that has an end, and from one that says nothing at all.
func TestCompletionReturnsSoon(t *testing.T) {
	defer func(patience time.Duration) { completionTimeout = patience }(completionTimeout)
	completionTimeout = 20 * time.Millisecond
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	holding := serveFake(t, newFake(), grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (any, error) {
		if end, ends := ctx.Deadline(); !ends || time.Until(end) > completionTimeout {
			return answer(ctx, request)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	for _, address := range []string{holding, silent.Addr().String()} {
		for _, args := range []string{"endpoints", "endpoints web", "checkers trust"} {
			status, out, _ := hdsd(t, append(append([]string{"__complete"}, strings.Fields(args)...), "--server", address, "")...)
			if status != exitDone || out != ":4\n" {
				t.Errorf("%s from %s: exit status %d, %q", args, address, status, out)
			}
		}
	}
}
