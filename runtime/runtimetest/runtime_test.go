package runtimetest_test

import (
	"testing"
	"testing/synctest"

	"podd/runtime/cri"
	"podd/runtime/runtimetest"
)

// newSubject returns a new in-memory runtime for TestRuntime, with the client that the function
// client returns.
func newSubject(t *testing.T, client func(*runtimetest.Runtime) *cri.Client) runtimetest.Subject {
	return newSubjectWith(t, runtimetest.Options{}, client)
}

func newSubjectWith(t *testing.T, o runtimetest.Options, client func(*runtimetest.Runtime) *cri.Client) runtimetest.Subject {
	r := runtimetest.New(t, o)
	r.AddImages("busybox")
	return runtimetest.Subject{Client: client(r), Image: "busybox", HasEvents: true}
}

func TestContractDirect(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtimetest.Subject {
		return newSubject(t, func(r *runtimetest.Runtime) *cri.Client { return r.Client })
	})
}

func TestContractCRIO(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtimetest.Subject {
		return newSubjectWith(t, runtimetest.Options{CRIO: true}, func(r *runtimetest.Runtime) *cri.Client { return r.Client })
	})
}

func TestContractInMemoryGRPC(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtimetest.Subject {
		return newSubject(t, func(r *runtimetest.Runtime) *cri.Client { return r.Dial(t) })
	})
}

func TestContractSocket(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtimetest.Subject {
		return newSubject(t, func(r *runtimetest.Runtime) *cri.Client {
			c, err := cri.Dial(cri.Options{Endpoint: r.Serve(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			return c
		})
	})
}

func TestInMemoryGRPC_InBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		if n, err := r.Dial(t).Node(t.Context()); err != nil || !n.Ready {
			t.Errorf("Node over gRPC in a synctest bubble: got %+v (error %v), want a ready one", n, err)
		}
	})
}
