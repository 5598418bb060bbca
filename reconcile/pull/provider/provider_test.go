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

// TestMain is also the plugin: the test's own program under another name.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "plugin") {
		act(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// act does what the arguments say and adds what it was asked to the file ASKED.
func act(args []string) {
	request, _ := io.ReadAll(os.Stdin)
	f, err := os.OpenFile(os.Getenv("ASKED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.Write(request)
		_ = f.Close()
	}
	switch args[0] {
	case "answer":
		fmt.Print(args[1])
	case "fail":
		fmt.Print(`{"secret": "hunter2"}`)
		fmt.Fprintln(os.Stderr, "asking the cloud\nthe token has expired")
		os.Exit(3)
	case "flood":
		for {
			fmt.Print(strings.Repeat("hunter2", 1000))
		}
	case "hang":
		select {}
	}
}

// bench is plugins whose names begin with "plugin", and what they were asked.
type bench struct {
	*Plugins
	t     *testing.T
	asked string
}

func setUp(t *testing.T, plugins ...config.CredentialProvider) *bench {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, asked: filepath.Join(dir, "asked")}
	for i := range plugins {
		p := &plugins[i]
		p.Name = fmt.Sprint("plugin", i)
		p.Env = append(p.Env, config.ExecEnvVar{Name: "ASKED", Value: b.asked})
		if err := os.Symlink(self, filepath.Join(dir, p.Name)); err != nil {
			t.Fatal(err)
		}
	}
	b.Plugins = New(dir, plugins)
	return b
}

const v1 = wire.GroupName + "/v1"

func pluginFor(images string, args ...string) config.CredentialProvider {
	return config.CredentialProvider{
		MatchImages: strings.Fields(images), APIVersion: v1, Args: args,
		DefaultCacheDuration: &metav1.Duration{},
	}
}

// answer is that of a plugin that lets user in at a.io.
func answer(user, more string) string {
	return `{"apiVersion": "` + v1 + `", "kind": "CredentialProviderResponse", "auth": {"a.io": {"username": "` + user + `", "password": "hunter2"}}, ` + more + `}`
}

func (b *bench) users(image string) (string, error) {
	auths, err := b.Credentials(b.t.Context(), image)
	var users []string
	for _, a := range auths {
		users = append(users, a.Username)
	}
	return strings.Join(users, " "), err
}

// requests is how often plugins were run.
func (b *bench) requests() int {
	data, err := os.ReadFile(b.asked)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// TestRequest: what a plugin is told, in each of the versions.
func TestRequest(t *testing.T) {
	for _, version := range APIVersions {
		p := pluginFor("a.io", "answer", strings.Replace(answer("ann", `"cacheKeyType": "Image"`), v1, version, 1))
		p.APIVersion = version
		b := setUp(t, p)
		if users, err := b.users("a.io/web"); users != "ann" || err != nil {
			t.Errorf("%s: %q %v", version, users, err)
		}
		data, err := os.ReadFile(b.asked)
		want := `{"kind":"CredentialProviderRequest","apiVersion":"` + version + `","image":"a.io/web"}` + "\n"
		if string(data) != want || err != nil {
			t.Errorf("asked %q, want %q; %v", data, want, err)
		}
	}
}

// TestNotAsked: a plugin hears nothing of images that are not its own.
func TestNotAsked(t *testing.T) {
	b := setUp(t, pluginFor("b.io *.a.io", "answer", answer("ann", `"cacheKeyType": "Image"`)))
	if users, err := b.users("a.io/web"); users != "" || err != nil || b.requests() != 0 {
		t.Errorf("%q %v, %d requests", users, err, b.requests())
	}
}

// TestKept: for what and for how long answers are kept.
func TestKept(t *testing.T) {
	for _, test := range []struct {
		more     string
		standard time.Duration
		images   string
		want     int // requests
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
		p := pluginFor("*.io *.io:5000", "answer", answer("ann", test.more))
		p.DefaultCacheDuration = &metav1.Duration{Duration: test.standard}
		b := setUp(t, p)
		for _, image := range strings.Fields(test.images) {
			if _, err := b.users(image); err != nil {
				t.Errorf("%s: %v", test.more, err)
			}
		}
		if got := b.requests(); got != test.want {
			t.Errorf("%s, default %s: %d requests for %s, want %d", test.more, test.standard, got, test.images, test.want)
		}
	}
}

// TestKeptNoLonger: when its time is over, an answer is forgotten.
func TestKeptNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New("/bin", []config.CredentialProvider{{Name: "none"}}).all[0]
		_, f, mine := p.join("a.io/x")
		if f == nil || !mine {
			t.Fatal("something is kept")
		}
		said := &wire.CredentialProviderResponse{}
		if err := json.Unmarshal([]byte(answer("ann", `"cacheKeyType": "Image", "cacheDuration": "1m"`)), said); err != nil {
			t.Fatal(err)
		}
		p.land("a.io/x", f, said, nil)
		time.Sleep(time.Minute - 1)
		if known, _, _ := p.join("a.io/x"); known["a.io"].Username != "ann" {
			t.Errorf("too early there is only %v", known)
		}
		time.Sleep(time.Nanosecond)
		if known, f, mine := p.join("a.io/y"); known != nil || f == nil || !mine || len(p.kept) != 0 {
			t.Errorf("it is still kept: %v", p.kept)
		}
	})
}

// TestFailures: who fails is named, says why, quotes no secret, and keeps nobody
// from the credentials of the others.
func TestFailures(t *testing.T) {
	good := pluginFor("a.io", "answer", answer("ann", `"cacheKeyType": "Image"`))
	said := func(text string) config.CredentialProvider { return pluginFor("a.io", "answer", text) }
	valid := answer("bob", `"cacheKeyType": "Image"`)
	for name, test := range map[string]struct {
		plugin config.CredentialProvider
		want   string
	}{
		"exit":            {pluginFor("a.io", "fail"), "exit status 3; run it by hand to see why"},
		"flood":           {pluginFor("a.io", "flood"), "more than 1 MiB"},
		"nothing":         {said(""), "no JSON"},
		"no JSON":         {said("hunter2"), "no JSON"},
		"more behind it":  {said(valid + "{}"), "no JSON"},
		"another version": {said(strings.Replace(valid, v1, v1+"beta1", 1)), "v1beta1 and was asked in"},
		"another API":     {said(strings.Replace(valid, v1, "v1", 1)), "another apiVersion"},
		"another kind":    {said(strings.Replace(valid, "Response", "Request", 1)), "another kind"},
		"unknown field":   {said(answer("bob", `"cacheKeyType": "Image", "hunter2": 1`)), "unknown, repeated or mistyped"},
		"repeated field":  {said(answer("bob", `"cacheKeyType": "Image", "cacheKeyType": "Image"`)), "unknown, repeated or mistyped"},
		"wrong case":      {said(answer("bob", `"CacheKeyType": "Image"`)), "unknown, repeated or mistyped"},
		"wrong type":      {said(answer("bob", `"cacheKeyType": "Image", "cacheDuration": "hunter2"`)), "unknown, repeated or mistyped"},
		"no cache key":    {said(answer("bob", `"auth": null`)), "unknown, repeated or mistyped"},
		"bad cache key":   {said(answer("bob", `"cacheKeyType": "hunter2"`)), "Image, Registry, Global"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setUp(t, test.plugin, good)
			users, err := b.users("a.io/web")
			if users != "ann" || err == nil || !strings.Contains(err.Error(), "credential provider plugin0, asked for a.io/web: ") ||
				!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, %v", users, err)
			}
		})
	}
}

// TestNoProgram: one that was there when podd started and is gone.
func TestNoProgram(t *testing.T) {
	b := setUp(t, pluginFor("a.io", "fail"))
	if err := os.Remove(b.all[0].path); err != nil {
		t.Fatal(err)
	}
	if _, err := b.users("a.io/web"); err == nil || strings.Count(err.Error(), b.all[0].path) != 1 || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// TestHangs: a plugin that does not end is ended.
func TestHangs(t *testing.T) {
	b := setUp(t, pluginFor("a.io", "hang"))
	b.all[0].patience = 100 * time.Millisecond
	if _, err := b.users("a.io/web"); err == nil || !strings.Contains(err.Error(), "was not done after 100ms") {
		t.Error(err)
	}
	b.all[0].patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	asked := b.requests()
	go func() {
		defer cancel()
		for b.requests() == asked && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := b.Credentials(ctx, "a.io/web"); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Error(err)
	}
}

// TestOneFlight: who asks the same while it is asked shares the answer; that the
// first no longer wants it is no answer.
func TestOneFlight(t *testing.T) {
	b := setUp(t, pluginFor("a.io", "answer", answer("ann", `"cacheKeyType": "Image", "cacheDuration": "1h"`)))
	p := b.all[0]
	_, f, _ := p.join("a.io/web") // the first is about to run it
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if users, err := b.users("a.io/web"); users != "ann" || err != nil {
				t.Errorf("%q %v", users, err)
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Credentials(gone, "a.io/web"); err == nil {
		t.Error("who no longer wants it waits for it")
	}
	p.land("a.io/web", f, nil, context.Canceled)
	all.Wait()
	if n := b.requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
}
