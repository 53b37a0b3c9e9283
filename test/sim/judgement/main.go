package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"hdsd/test/sim"
)

func main() {
	seeds := flag.Int("seeds", 20, "how many seeds")
	first := flag.Int("first", 1, "the first of them")
	endpoints := flag.Int("endpoints", 20_000, "how many endpoints; a checker for a hundred of them")
	scenario := flag.String("scenario", "", "only this one, and write nothing")
	docs := flag.String("docs", "docs/internals", "folder to write to")
	flag.Parse()

	s := study{size: sim.Of(*endpoints), first: *first, seeds: *seeds, rules: sim.Rules()}
	fmt.Printf("seeds %d to %d, %d endpoints, %d checkers\n", s.first, s.last(), s.size.Endpoints, s.size.Observers)
	for _, x := range sim.Scenarios() {
		if *scenario != "" && x.Name != *scenario {
			continue
		}
		f := s.play(x)
		s.findings = append(s.findings, f)
		f.print(os.Stdout, s.rules)
	}
	if len(s.findings) == 0 {
		fmt.Fprintf(os.Stderr, "there is no scenario %q\n", *scenario)
		os.Exit(2)
	}
	if *scenario != "" {
		return
	}
	if err := s.write(*docs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the document and its plots.
func (s *study) write(folder string) error {
	files := map[string]string{"judgement.md": s.document()}
	for _, p := range s.plots() {
		files[p.File] = p.SVG()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}
