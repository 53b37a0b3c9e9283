package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
)

func main() {
	if len(os.Args) == 2 && (os.Args[1] == plainFloor || os.Args[1] == tunedFloor) {
		end(serveFloor(os.Args[1]))
	}
	if len(os.Args) == 3 && os.Args[1] == "peer" {
		end(servePeer(os.Args[2]))
	}
	if len(os.Args) == 4 && os.Args[1] == "texts" {
		connections, err := strconv.Atoi(os.Args[3])
		if err == nil {
			err = serveTexts(os.Args[2], connections)
		}
		end(err)
	}
	var o options
	flag.StringVar(&o.binary, "hdsd", "bin/hdsd", "the hdsd to measure")
	flag.StringVar(&o.base, "base", "", "revision to compare with; writes no document")
	flag.BoolVar(&o.full, "full", false, "large sizes: hours, and gigabytes of memory")
	flag.IntVar(&o.turns, "turns", 5, "how often the contenders of a scenario take turns")
	flag.StringVar(&o.only, "only", "", "only scenarios whose name contains this; writes no document")
	flag.StringVar(&o.docs, "docs", "docs/reference", "folder to write to")
	flag.Parse()
	end(o.bench())
}

// end ends the process.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
