package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	config "k8s.io/kubelet/config/v1"
	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// TestMain runs the plugin if the test binary was started under the name of a plugin.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "plugin") {
		runPlugin(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// runPlugin appends its request to the file REQUEST_LOG. Then it behaves as args[0] specifies.
func runPlugin(args []string) {
	request, _ := io.ReadAll(os.Stdin)
	f, err := os.OpenFile(os.Getenv("REQUEST_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.Write(request)
		_ = f.Close()
	}
	switch args[0] {
	case "answer":
		fmt.Print(args[1])
	case "fail":
		fmt.Print(`{"secret": "hunter2"}`)
		fmt.Fprintln(os.Stderr, "querying the cloud\nthe token has expired")
		os.Exit(3)
	case "flood":
		for {
			fmt.Print(strings.Repeat("hunter2", 1000))
		}
	case "hang":
		time.Sleep(time.Hour) // do not use select {}, which would be reported as a deadlock
	}
}

// A fixture has plugins with names that begin with "plugin", and a log of their requests.
type fixture struct {
	*Plugins
	t          *testing.T
	requestLog string

	mu   sync.Mutex // guards runs
	runs []Run      // the arguments of Options.OnRun
}

func newFixture(t *testing.T, plugins ...config.CredentialProvider) *fixture {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t, requestLog: filepath.Join(dir, "requests")}
	for i := range plugins {
		p := &plugins[i]
		p.Name = fmt.Sprint("plugin", i)
		p.Env = append(p.Env, config.ExecEnvVar{Name: "REQUEST_LOG", Value: b.requestLog})
		if err := os.Symlink(self, filepath.Join(dir, p.Name)); err != nil {
			t.Fatal(err)
		}
	}
	b.Plugins = New(Options{Dir: dir, Providers: plugins, OnRun: func(r Run) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.runs = append(b.runs, r)
	}})
	for _, p := range b.plugins {
		p.timeout = time.Hour // a plugin needs long to start on a busy host
	}
	return b
}

const v1 = wire.GroupName + "/v1"

func pluginFor(images string, args ...string) config.CredentialProvider {
	return config.CredentialProvider{
		MatchImages: strings.Fields(images), APIVersion: v1, Args: args,
		DefaultCacheDuration: &metav1.Duration{},
	}
}

// response returns a response with the credentials of user for a.io.
func response(user, more string) string {
	return `{"apiVersion": "` + v1 + `", "kind": "CredentialProviderResponse", "auth": {"a.io": {"username": "` + user + `", "password": "hunter2"}}, ` + more + `}`
}

func (b *fixture) users(image string) (string, error) {
	auths, err := b.Credentials(b.t.Context(), Request{Repository: image})
	var users []string
	for _, a := range auths {
		users = append(users, a.Auth.Username)
	}
	return strings.Join(users, " "), err
}

// requests returns the number of runs of plugins.
func (b *fixture) requests() int {
	data, err := os.ReadFile(b.requestLog)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// TestRequest checks the request in each version.
func TestRequest(t *testing.T) {
	for _, version := range APIVersions {
		p := pluginFor("a.io", "answer", strings.Replace(response("ann", `"cacheKeyType": "Image"`), v1, version, 1))
		p.APIVersion = version
		b := newFixture(t, p)
		if users, err := b.users("a.io/web"); users != "ann" || err != nil {
			t.Errorf("%s: got users %q (error %v), want ann", version, users, err)
		}
		data, err := os.ReadFile(b.requestLog)
		want := `{"kind":"CredentialProviderRequest","apiVersion":"` + version + `","image":"a.io/web"}` + "\n"
		if string(data) != want || err != nil {
			t.Errorf("got request %q, want %q; %v", data, want, err)
		}
	}
}

// TestMatchImages checks that a plugin is not run for images that its matchImages does not match.
func TestMatchImages(t *testing.T) {
	b := newFixture(t, pluginFor("b.io *.a.io", "answer", response("ann", `"cacheKeyType": "Image"`)))
	if users, err := b.users("a.io/web"); users != "" || err != nil || b.requests() != 0 {
		t.Errorf("got users %q, error %v, %d requests; want none", users, err, b.requests())
	}
}

// TestCache checks for which images and how long responses are cached.
func TestCache(t *testing.T) {
	for _, test := range []struct {
		more     string
		standard time.Duration
		images   string
		want     int // number of requests
	}{
		{`"cacheKeyType": "Image", "cacheDuration": "1h"`, 0, "a.io/x a.io/x", 1},
		{`"cacheKeyType": "Image", "cacheDuration": "1h"`, 0, "a.io/x a.io/y", 2},
		{`"cacheKeyType": "Registry", "cacheDuration": "1h"`, 0, "a.io/x a.io/y", 1},
		{`"cacheKeyType": "Registry", "cacheDuration": "1h"`, 0, "a.io/x b.io/x", 2},
		{`"cacheKeyType": "Registry", "cacheDuration": "1h"`, 0, "a.io/x a.io:5000/x", 2},
		{`"cacheKeyType": "Global", "cacheDuration": "1h"`, 0, "a.io/x b.io/x", 1},
		{`"cacheKeyType": "Image", "cacheDuration": "0s"`, time.Hour, "a.io/x a.io/x", 2},
		{`"cacheKeyType": "Image", "cacheDuration": "-1h"`, time.Hour, "a.io/x a.io/x", 2},
		{`"cacheKeyType": "Image"`, time.Hour, "a.io/x a.io/x", 1},
		{`"cacheKeyType": "Image", "cacheDuration": null`, time.Hour, "a.io/x a.io/x", 1},
		{`"cacheKeyType": "Image"`, 0, "a.io/x a.io/x", 2},
	} {
		p := pluginFor("*.io *.io:5000", "answer", response("ann", test.more))
		p.DefaultCacheDuration = &metav1.Duration{Duration: test.standard}
		b := newFixture(t, p)
		for _, image := range strings.Fields(test.images) {
			if _, err := b.users(image); err != nil {
				t.Errorf("image %s, response with %s: got error %v, want none", image, test.more, err)
			}
		}
		if got := b.requests(); got != test.want {
			t.Errorf("response with %s, default duration %s: got %d requests for %s; want %d", test.more, test.standard, got, test.images, test.want)
		}
	}
}

// TestCache_Expires checks that a response is removed at the end of its duration.
func TestCache_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Dir: "/bin", Providers: []config.CredentialProvider{{Name: "none"}}}).plugins[0]
		_, f, owner := p.joinRun("a.io/x", nil)
		if f == nil || !owner {
			t.Fatal("join with an empty cache: got a response, want a new run")
		}
		res := &wire.CredentialProviderResponse{}
		if err := json.Unmarshal([]byte(response("ann", `"cacheKeyType": "Image", "cacheDuration": "1m"`)), res); err != nil {
			t.Fatal(err)
		}
		p.finish("a.io/x", nil, f, res, nil)
		time.Sleep(time.Minute - 1)
		if cached, _, _ := p.joinRun("a.io/x", nil); cached["a.io"].Username != "ann" {
			t.Errorf("before the end: got %v, want the user ann", cached)
		}
		time.Sleep(time.Nanosecond)
		if cached, f, owner := p.joinRun("a.io/y", nil); cached != nil || f == nil || !owner || len(p.entries) != 0 {
			t.Errorf("after the end: got %v, want no entries", p.entries)
		}
	})
}

// TestFailures checks that the error names the failed plugin and the cause, and quotes no secret.
// The credentials of the other plugins must still be returned.
func TestFailures(t *testing.T) {
	good := pluginFor("a.io", "answer", response("ann", `"cacheKeyType": "Image"`))
	responds := func(text string) config.CredentialProvider { return pluginFor("a.io", "answer", text) }
	valid := response("bob", `"cacheKeyType": "Image"`)
	for name, test := range map[string]struct {
		plugin config.CredentialProvider
		want   string
	}{
		"exit":            {pluginFor("a.io", "fail"), "exit status 3; run the program manually to see its output"},
		"flood":           {pluginFor("a.io", "flood"), "more than 1 MiB"},
		"nothing":         {responds(""), "no JSON"},
		"no JSON":         {responds("hunter2"), "no JSON"},
		"trailing data":   {responds(valid + "{}"), "no JSON"},
		"another version": {responds(strings.Replace(valid, v1, v1+"beta1", 1)), "v1beta1 to a request with"},
		"another API":     {responds(strings.Replace(valid, v1, "v1", 1)), "the apiVersion of the response is not"},
		"another kind":    {responds(strings.Replace(valid, "Response", "Request", 1)), "the kind of the response is not"},
		"unknown field":   {responds(response("bob", `"cacheKeyType": "Image", "hunter2": 1`)), "unknown, repeated or mistyped"},
		"repeated field":  {responds(response("bob", `"cacheKeyType": "Image", "cacheKeyType": "Image"`)), "unknown, repeated or mistyped"},
		"wrong case":      {responds(response("bob", `"CacheKeyType": "Image"`)), "unknown, repeated or mistyped"},
		"wrong type":      {responds(response("bob", `"cacheKeyType": "Image", "cacheDuration": "hunter2"`)), "unknown, repeated or mistyped"},
		"no cache key":    {responds(response("bob", `"auth": null`)), "unknown, repeated or mistyped"},
		"bad cache key":   {responds(response("bob", `"cacheKeyType": "hunter2"`)), "Image, Registry, Global"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, test.plugin, good)
			users, err := b.users("a.io/web")
			hasFailed := name == "exit" || name == "flood" // a program with an invalid response has not failed, as in the kubelet
			if len(b.runs) != 2 || b.runs[0].Plugin != "plugin0" || b.runs[0].Took <= 0 || b.runs[0].HasFailed != hasFailed || b.runs[1].Plugin != "plugin1" || b.runs[1].HasFailed {
				t.Errorf("got runs %+v, want one of each plugin, and that only the first one has failed: %t", b.runs, hasFailed)
			}
			if users != "ann" || err == nil || !strings.Contains(err.Error(), "credential provider plugin0 failed for a.io/web: ") ||
				!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got users %q and error %v; want ann and one that contains %q without the response", users, err, test.want)
			}
		})
	}
}

// TestProgramMissing checks the error for a program that was removed after New.
func TestProgramMissing(t *testing.T) {
	b := newFixture(t, pluginFor("a.io", "fail"))
	if err := os.Remove(b.plugins[0].path); err != nil {
		t.Fatal(err)
	}
	if _, err := b.users("a.io/web"); err == nil || strings.Count(err.Error(), b.plugins[0].path) != 1 || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// TestHangs checks that a plugin is killed after its timeout and on cancellation.
func TestHangs(t *testing.T) {
	b := newFixture(t, pluginFor("a.io", "hang"))
	b.plugins[0].timeout = 100 * time.Millisecond
	if _, err := b.users("a.io/web"); err == nil || !strings.Contains(err.Error(), "did not finish within 100ms") {
		t.Error(err)
	}
	b.plugins[0].timeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	requestLog := b.requests()
	go func() {
		defer cancel()
		for b.requests() == requestLog && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := b.Credentials(ctx, Request{Repository: "a.io/web"}); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Error(err)
	}
	if len(b.runs) != 2 || !b.runs[0].HasFailed || b.runs[1].HasFailed {
		t.Errorf("got runs %+v, want a failed run that exceeded the timeout and then a successful one", b.runs)
	}
}

// TestSharedRun checks that concurrent callers share one run, and that they run the
// plugin again if the caller that ran it was canceled.
func TestSharedRun(t *testing.T) {
	b := newFixture(t, pluginFor("a.io", "answer", response("ann", `"cacheKeyType": "Image", "cacheDuration": "1h"`)))
	p := b.plugins[0]
	_, f, _ := p.joinRun("a.io/web", nil) // the first caller has begun to run the plugin
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if users, err := b.users("a.io/web"); users != "ann" || err != nil {
				t.Errorf("got users %q (error %v), want ann", users, err)
			}
		})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Credentials(canceled, Request{Repository: "a.io/web"}); err == nil {
		t.Error("canceled caller: got no error, want one")
	}
	p.finish("a.io/web", nil, f, nil, context.Canceled)
	all.Wait()
	if n := b.requests(); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}
