package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeContexts writes the file of contexts, and has commands use it.
func writeContexts(t *testing.T, text string) (file string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	file = filepath.Join(home, "hdsd", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestContexts(t *testing.T) {
	here, secure := serveFake(t, newFake()), serveFake(t, newFake(), demanding("s3cret"))
	file := writeContexts(t, "# mine\ncontexts:\n- name: here\n  server: "+here+" # this machine\n- {name: secure, server: \""+secure+"\", token_file: token}\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args        []string
		environment map[string]string
		want        int
		says        string // in either output
	}{
		{args: []string{"clusters"}, want: exitFailed, says: "nothing listens at 127.0.0.1:18000"}, // none is chosen
		{args: []string{"context", "list"}, says: "here"},
		{args: []string{"context", "use", "hree"}, want: exitFailed, says: "did you mean here?"},
		{args: []string{"context", "use"}, want: exitUsage, says: "name one context"},
		{args: []string{"context", "use", "here"}, says: "commands ask here at " + here + " now"},
		{args: []string{"context", "list", "-o", "json"}, says: `"current":true`},
		{args: []string{"clusters"}, says: "plain"},
		{args: []string{"describe", "checker", "checker-1"}, says: "checker-1"},
		{args: []string{"context", "use", "secure"}, says: secure},
		{args: []string{"clusters"}, says: "plain"}, // with its token
		{args: []string{"clusters"}, environment: map[string]string{"HDSD_TOKEN": "other"}, want: exitFailed, says: `shown ["Bearer other"]`},
		{args: []string{"clusters", "--server", here}, says: "plain"},
		{args: []string{"clusters", "--server", secure}, want: exitFailed, says: "shown []"}, // the token is the context's
		{args: []string{"clusters"}, environment: map[string]string{"HDSD_SERVER": secure}, want: exitFailed, says: "shown []"},
		{args: []string{"clusters"}, environment: map[string]string{"HDSD_SERVER": here}, says: "plain"},
		{args: []string{"clusters", "--token-file", "/nonexistent/token"}, want: exitFailed, says: "--token-file: "},
	} {
		t.Run(strings.Join(step.args, " "), func(t *testing.T) {
			for name, value := range step.environment {
				t.Setenv(name, value)
			}
			if status, out, errors := hdsd(t, step.args...); status != step.want || !strings.Contains(out+errors, step.says) || strings.Contains(out+errors, "s3cret") {
				t.Errorf("exit status %d, want %d and %q:\n%s%s", status, step.want, step.says, out, errors)
			}
		})
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "# mine\n") || !strings.Contains(string(text), "# this machine") || !strings.Contains(string(text), "current: secure\n") {
		t.Errorf("the file has become\n%s %v", text, err)
	}
	_, out, _ := hdsd(t, "context", "list", "-o", "json")
	var first struct{ Name, Server string }
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&first); err != nil || first.Name != "here" || first.Server != here {
		t.Errorf("as json: %s, %v", out, err)
	}
}

// TestBadContexts say where the mistake is.
func TestBadContexts(t *testing.T) {
	for text, want := range map[string]string{
		"contexts:\n- name: a\n  sever: b\n":    "line 3: field sever not found",
		"contexts:\n- name: a\n":                "give both, name and server",
		"current: b\ncontexts: []\n":            "there is no context \"b\"",
		"contexts: [{name: a, server: 'x:1'}\n": "config.yaml: ",
	} {
		writeContexts(t, text)
		if status, _, errors := hdsd(t, "clusters"); status != exitFailed || !strings.Contains(errors, want) {
			t.Errorf("%q: exit status %d, %s", text, status, errors)
		}
	}
	writeContexts(t, "")
	if status, _, errors := hdsd(t, "context", "list"); status != exitDone || !strings.Contains(errors, "no contexts: ") {
		t.Errorf("an empty file: exit status %d, %s", status, errors)
	}
}
