//go:build !race

// The race detector would make the compilation of client-go's clientset last minutes; see the Makefile.

package kube

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"podd/server/auth"
	"podd/server/kube/kubetest"
)

// TestAPI_Informer checks that client-go's informers work with list and watch, and with a streaming
// list, and that their caches contain the node's objects.
func TestAPI_Informer(t *testing.T) {
	for name, streams := range map[string]bool{"list": false, "watch alone": true} {
		t.Run(name, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, streams)
			testInformer(t, streams)
		})
	}
}

func testInformer(t *testing.T, streams bool) {
	n := kubetest.NewNode()
	var lists atomic.Int32
	h := newAPI(n).Handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			lists.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	var deleted atomic.Int32
	pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { deleted.Add(1) }})
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	if !cache.WaitForCacheSync(t.Context().Done(), pods.Informer().HasSynced) {
		t.Fatal("the cache of the informer was not complete before the context ended")
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("time limit reached while %s", what)
			}
		}
	}
	if listed := lists.Load() > 0; listed == streams {
		t.Errorf("informer used a list request: got %t, want %t", listed, !streams)
	}
	if all, err := pods.Lister().List(labels.Everything()); err != nil || len(all) != 2 {
		t.Fatalf("cache of the informer: got pods %v, error %v; want 2 pods", all, err)
	}
	n.PutPod(kubetest.Pod("default", "new-n1", "3"))
	await("waiting for the added pod", func() bool { p, err := pods.Lister().Pods("default").Get("new-n1"); return err == nil && p.UID == "u3" })
	ended := kubetest.Pod("default", "new-n1", "3")
	ended.Status.Phase = v1.PodSucceeded
	n.PutPod(ended)
	await("waiting for the modified pod", func() bool {
		p, err := pods.Lister().Pods("default").Get("new-n1")
		return err == nil && p.Status.Phase == v1.PodSucceeded
	})
	n.RemovePod("new-n1")
	await("waiting for the deletion", func() bool { return deleted.Load() == 1 })
	s.CloseClientConnections() // the informer must resume its watch
	n.PutPod(kubetest.Pod("default", "new-n1", "4"))
	await("waiting for a pod added after the disconnect", func() bool { p, err := pods.Lister().Pods("default").Get("new-n1"); return err == nil && p.UID == "u4" })
}

// TestAPI_Client checks that client-go can parse the discovery documents and the errors of podd.
func TestAPI_Client(t *testing.T) {
	n := kubetest.NewNode()
	s := httptest.NewServer(auth.ServeAs(auth.User{Name: "bob"}, newAPI(n).Handler()))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL, QPS: -1}
	for _, legacy := range []bool{false, true} {
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		d.UseLegacyDiscovery = legacy
		_, lists, err := d.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				found[list.GroupVersion+" "+r.Name] = true
			}
		}
		for _, want := range []string{"v1 pods", "v1 pods/exec", "v1 nodes", "authorization.k8s.io/v1 selfsubjectaccessreviews"} {
			if !found[want] {
				t.Errorf("discovery, legacy format %t: got resources %[3]v, want %[2]s among them", legacy, want, found)
			}
		}
	}
	protobuf := rest.CopyConfig(config)
	protobuf.AcceptContentTypes, protobuf.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username != "bob" {
		t.Errorf("SelfSubjectReview: got %v, error %v; want the user bob", review, err)
	}
	if list, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{Limit: 500}); err != nil || len(list.Items) != 1 || string(list.Items[0].Data["k"]) != "v" {
		t.Errorf("secrets: got %v and error %v, want the Secret with its data", list, err)
	}
}
