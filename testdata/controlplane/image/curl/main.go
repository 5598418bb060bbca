// Command curl implements the part of curl that the conformance suite uses: it gets one URL and
// prints the body of the response.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

type options struct {
	include                      bool
	output, write                string
	connectTimeout, totalTimeout float64 // in seconds; 0 means no limit
	url                          string
	ignored                      bool // value of flags without an effect
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = get(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode returns the exit code that curl has for an error: 28 after a timeout, or 7 if there
// is no response.
func exitCode(err error) int {
	var netErr net.Error
	switch {
	case errors.As(err, &netErr) && netErr.Timeout():
		return 28
	case errors.As(err, &netErr):
		return 7
	}
	return 2
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("curl", flag.ContinueOnError)
	for _, name := range []string{"g", "q", "s"} {
		f.BoolVar(&o.ignored, name, false, "ignored")
	}
	f.BoolVar(&o.include, "i", false, "also print the header of the response")
	f.StringVar(&o.output, "o", "", "write the response to this `file`")
	f.StringVar(&o.write, "w", "", "print this at the end; %{http_code} is the status")
	f.Float64Var(&o.connectTimeout, "connect-timeout", 0, "time limit of the connection in `seconds`")
	f.Float64Var(&o.totalTimeout, "max-time", 0, "time limit of the request in `seconds`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() != 1 {
		return o, fmt.Errorf("want one URL, got %q", f.Args())
	}
	o.url = f.Arg(0)
	if !strings.Contains(o.url, "://") {
		o.url = "http://" + o.url
	}
	return o, nil
}

func get(o options) error {
	ctx := context.Background()
	if o.totalTimeout > 0 {
		requestCtx, cancel := context.WithTimeout(ctx, seconds(o.totalTimeout))
		defer cancel()
		ctx = requestCtx
	}
	dialer := net.Dialer{Timeout: seconds(o.connectTimeout)}
	client := http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url, nil)
	if err != nil {
		return err
	}
	r, err := client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if err := print(o, r); err != nil {
		return err
	}
	if o.write != "" {
		fmt.Print(strings.ReplaceAll(o.write, "%{http_code}", strconv.Itoa(r.StatusCode)))
	}
	return nil
}

func print(o options, r *http.Response) error {
	out := os.Stdout
	if o.output != "" {
		f, err := os.Create(o.output)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	if o.include {
		fmt.Fprintf(out, "%s %s\r\n", r.Proto, r.Status)
		if err := r.Header.Write(out); err != nil {
			return err
		}
		fmt.Fprint(out, "\r\n")
	}
	_, err := io.Copy(out, r.Body)
	return err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
