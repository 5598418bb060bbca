package main

import (
	"testing"

	"podd/server"
)

// TestRunOn: users are told of the pods that run when podd ends, not of what rests.
func TestRunOn(t *testing.T) {
	v := &server.View{Pods: []*server.PodView{{Sandbox: "a", Exists: true}, {Exists: true}, {}, {Sandbox: "b"}}}
	if n := runOn(v); n != 2 {
		t.Errorf("%d pods run", n)
	}
}
