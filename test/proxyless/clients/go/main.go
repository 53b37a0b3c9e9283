package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds" // takes xds:/// targets
)

func main() {
	deadline, pause := milliseconds(os.Args[1]), milliseconds(os.Args[2])
	for _, target := range os.Args[3:] {
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			for {
				call(healthv1.NewHealthClient(conn), target, deadline)
				time.Sleep(pause)
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func milliseconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return time.Duration(n) * time.Millisecond
}

func call(client healthv1.HealthClient, target string, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	began, header, failure := time.Now(), metadata.MD{}, ""
	if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
		failure = fmt.Sprintf("%v: %s", status.Code(err), status.Convert(err).Message())
	}
	line, err := json.Marshal(map[string]any{
		"target": target, "peer": strings.Join(header.Get("peer"), ","), "error": failure, "milliseconds": time.Since(began).Milliseconds(),
	})
	if err == nil {
		fmt.Println(string(line))
	}
}
