package registry

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/random"
)

func start(t *testing.T, o Options) *Registry {
	t.Helper()
	r, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// push pushes an image and returns the URL of its manifest.
func push(t *testing.T, r *Registry) string {
	t.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := r.Push(image, "team/web:1")
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Host() + "/team/web:1"; ref != want {
		t.Errorf("reference of the pushed image: got %s, want %s", ref, want)
	}
	return "http://" + r.Host() + "/v2/team/web/manifests/1"
}

func status(t *testing.T, ctx context.Context, url, user, password string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return reply.StatusCode, reply.Body.Close()
}

func TestPassword(t *testing.T) {
	r := start(t, Options{User: "ann", Password: "secret"})
	url := push(t, r)
	for _, test := range []struct {
		user, password string
		want           int
	}{{"", "", 401}, {"ann", "wrong", 401}, {"ann", "secret", 200}} {
		if got, err := status(t, t.Context(), url, test.user, test.password); got != test.want || err != nil {
			t.Errorf("request as user %q with password %q: got %d (error %v), want %d", test.user, test.password, got, err, test.want)
		}
	}
}

func TestInject_PathAndTimes(t *testing.T) {
	r := start(t, Options{})
	url := push(t, r)
	before := r.RequestCount("/manifests/")
	r.Inject(Fault{PathPart: "/blobs/", Status: 500})
	r.Inject(Fault{PathPart: "/manifests/", Status: 429, Times: 2})
	for i, want := range []int{429, 429, 200} {
		if got, err := status(t, t.Context(), url, "", ""); got != want || err != nil {
			t.Errorf("request %d: got %d (error %v), want %d", i, got, err, want)
		}
	}
	if got := r.RequestCount("/manifests/") - before; got != 3 {
		t.Errorf("recorded requests for manifests: got %d, want 3", got)
	}
}

func TestInject_Hang(t *testing.T) {
	r := start(t, Options{})
	url := push(t, r)
	r.Inject(Fault{})
	ended := make(chan error, 1)
	startHanging := func(ctx context.Context) {
		t.Helper()
		go func() {
			_, err := status(t, ctx, url, "", "")
			ended <- err
		}()
		for r.HangingCount() == 0 {
			select {
			case err := <-ended:
				t.Fatalf("request with a fault: got its end with error %v, want it to hang", err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	startHanging(ctx)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled hanging request: got error %v, want %v", err, context.Canceled)
	}
	for r.HangingCount() > 0 { // until the registry has noticed the end of the request
		time.Sleep(time.Millisecond)
	}
	r.ClearFaults()
	if got, err := status(t, t.Context(), url, "", ""); got != 200 || err != nil {
		t.Errorf("request after ClearFaults: got %d (error %v), want 200", got, err)
	}
	r.Inject(Fault{Times: 1})
	startHanging(t.Context())
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("hanging request after the server was closed: got no error, want one")
	}
}
