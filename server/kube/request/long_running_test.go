package request

import (
	"net/http/httptest"
	"testing"
)

func TestIsLongRunning(t *testing.T) {
	for target, want := range map[string]bool{
		"/containerLogs/a/b/c?follow=1": true, "/containerLogs/a/b/c": false, "/exec/a/b/c": true, "/page/state": true, "/page/logs?container=c": false, "/page/logs?follow=1": true,
		"/v1/state?watch=1": true, "/v1/logs?follow=true": true, "/api/v1/pods?watch": true, "/apis/metrics.k8s.io/v1beta1/pods?watch=true": true,
		"/api/v1/namespaces/a/pods/b/log?follow=true": true, "/api/v1/namespaces/a/pods/b/exec?command=ls": true,
		"/api/v1/namespaces/a/pods/b/attach": true, "/api/v1/namespaces/a/pods/b/portforward": true,
		"/v1/state": false, "/v1/logs?follow=false": false, "/api/v1/pods?watch=0": false, "/api/v1/namespaces/a/pods/exec": false,
		"/v1/events?watch=true": true, "/v1/state?follow=1": false, "/v1/logs?watch=1": false, "/v1/version?watch=1": false,
		"/api/v1/pods?follow=1": false, "/api/v1/namespaces/a/pods/b?watch=1": false, "/api/v1/namespaces/a/pods/b/log": false,
		"/api/v1/namespaces/a/pods/b/log?watch=1": false, "/api?watch=1": false, "/apis/apps/v1?watch=1&follow=1": false,
		"/api/v1/nodes/n/proxy/containerLogs/a/b/c?follow=true": true, "/api/v1/nodes/n/proxy/containerLogs/a/b/c": false,
		"/page/usage": false, "/pods?watch=1": false, "/api": false,
		"/api/v1/nodes/n/proxy/exec/a/b/c": true, "/api/v1/nodes/n/proxy/pods": false, "/api/v1/nodes/n/proxy/api/v1/nodes/n/proxy/": false,
	} {
		r := httptest.NewRequest("GET", target, nil)
		if got := IsLongRunning(r); got != want {
			t.Errorf("IsLongRunning of %s: got %t, want %t", target, got, want)
		}
	}
}
