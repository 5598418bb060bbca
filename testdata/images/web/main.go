// Command web is a server for demonstrations. It responds to every request on port $PORT (default
// 8080) with the hostname.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, ":"+port()); err != nil {
		log.Fatal(err)
	}
}

func port() string {
	if p := os.Getenv("PORT"); p != "" {
		return p
	}
	return "8080"
}

// serve serves on addr until ctx is done. Then it waits at most five seconds for the requests in
// progress.
func serve(ctx context.Context, addr string) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host name: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	server := &http.Server{Addr: addr, Handler: hello(host), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		stopped <- server.Shutdown(grace)
	}()
	log.Printf("listening on %s", addr)
	err = server.ListenAndServe()
	cancel()
	if !errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return fmt.Errorf("serving on %s: %w", addr, err)
	}
	return <-stopped
}

func hello(host string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s from %s", r.Method, r.URL.Path, r.RemoteAddr)
		fmt.Fprintf(w, "hello from %s\n", host)
	})
}
