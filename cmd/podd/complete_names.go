package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// namesOf are what a tag complete may name. Each has no names where podd does not
// run, or may not be asked.
var namesOf = map[string]func(context.Context, *live) []choice{
	"file":      func(context.Context, *live) []choice { return []choice{files} },
	"pod":       func(ctx context.Context, n *live) []choice { return n.pods(ctx, "") },
	"podfile":   func(ctx context.Context, n *live) []choice { return n.pods(ctx, ":") },
	"container": func(ctx context.Context, n *live) []choice { return n.containers(ctx) },
	"port":      func(ctx context.Context, n *live) []choice { return n.ports(ctx) },
	"claim":     func(ctx context.Context, n *live) []choice { return n.claims(ctx) },
	"namespace": func(ctx context.Context, n *live) []choice { return n.objects(ctx, "namespaces", "") },
	"resource":  func(ctx context.Context, n *live) []choice { return n.resources(ctx) },
	"object":    func(ctx context.Context, n *live) []choice { return n.named(ctx) },
}

// live has the names from the podd that runs.
type live struct {
	*typed
	view *server.View
}

func (n *live) peer(ctx context.Context) *peer {
	p, err := Client{RunDir: orElse(n.flags["run-dir"], os.Getenv("PODD_RUN_DIR"))}.connect(ctx)
	if err != nil {
		return nil
	}
	return p
}

// state is what podd shows; empty where there is none.
func (n *live) state(ctx context.Context) *server.View {
	if n.view != nil {
		return n.view
	}
	n.view = &server.View{}
	if p := n.peer(ctx); p != nil {
		if v, err := p.state(ctx); err == nil {
			n.view = v
		}
	}
	return n.view
}

// pods are the words that verbs know pods by.
func (n *live) pods(ctx context.Context, end string) []choice {
	v := n.state(ctx)
	s := Select{Namespace: n.flags["namespace"]}
	var all []choice
	for _, p := range v.Pods {
		if !s.keeps(p.Pod.Namespace) {
			continue
		}
		word := wordFor(v, p.Key())
		switch {
		case s.Namespace != "":
			word = shortName(v, p.Pod.Name)
		case strings.Contains(n.begun, "/"):
			word = title(v, p.Key())
		}
		all = append(all, choice{word + end, columns(p, time.Now()).Status})
	}
	return all
}

// pod is the one that the first argument names; nil: there is none.
func (n *live) pod(ctx context.Context) *server.PodView {
	for _, word := range n.args {
		word, _, _ = strings.Cut(word, ":") // of podd cp
		if p, err := (Select{Namespace: n.flags["namespace"]}).findPod(n.state(ctx), word); err == nil {
			return p
		}
	}
	return nil
}

func (n *live) containers(ctx context.Context) []choice {
	p := n.pod(ctx)
	if p == nil {
		return nil
	}
	var all []choice
	for _, c := range p.Pod.Spec.InitContainers {
		all = append(all, choice{c.Name, c.Image})
	}
	for _, c := range p.Pod.Spec.Containers {
		all = append(all, choice{c.Name, c.Image})
	}
	for _, c := range p.Pod.Spec.EphemeralContainers {
		all = append(all, choice{c.Name, c.Image})
	}
	return all
}

func (n *live) ports(ctx context.Context) []choice {
	p := n.pod(ctx)
	if p == nil {
		return nil
	}
	var all []choice
	for _, c := range p.Pod.Spec.Containers {
		for _, port := range c.Ports {
			all = append(all, choice{strconv.Itoa(int(port.ContainerPort)), strings.TrimSpace(port.Name + " " + c.Name)})
		}
	}
	return all
}

func (n *live) claims(ctx context.Context) []choice {
	var all []choice
	for _, c := range n.state(ctx).Claims {
		all = append(all, choice{c.Claim.String(), c.Requested})
	}
	return all
}

// resources are what podd get lists; behind a comma another, behind a slash its
// objects.
func (n *live) resources(ctx context.Context) []choice {
	if kind, begun, ok := strings.Cut(n.begun, "/"); ok {
		line := *n.typed
		line.begun = begun
		all := (&live{typed: &line}).objectsOf(ctx, kind)
		for i := range all {
			all[i].word = kind + "/" + all[i].word
		}
		return all
	}
	p := n.peer(ctx)
	if p == nil {
		return nil
	}
	before := n.begun[:strings.LastIndex(n.begun, ",")+1]
	kinds, err := p.kubeResources(ctx)
	if err != nil {
		return nil
	}
	var all []choice
	seen := map[string]bool{}
	for _, r := range kinds {
		if !seen[r.Name] {
			seen[r.Name] = true
			all = append(all, choice{before + r.Name, strings.Join(r.ShortNames, ", ")})
		}
	}
	return all
}

// named are the objects of the kind that the first argument is.
func (n *live) named(ctx context.Context) []choice {
	if len(n.args) == 0 || strings.Contains(n.args[0], "/") {
		return nil
	}
	return n.objectsOf(ctx, n.args[0])
}

func (n *live) objectsOf(ctx context.Context, kind string) []choice {
	switch kind {
	case "pods", "pod", "po":
		return n.pods(ctx, "")
	}
	namespace := n.flags["namespace"]
	return n.objects(ctx, kind, orElse(namespace, metav1.NamespaceDefault))
}

func (n *live) objects(ctx context.Context, kind, namespace string) []choice {
	p := n.peer(ctx)
	if p == nil {
		return nil
	}
	kinds, err := p.kubeResources(ctx)
	if err != nil {
		return nil
	}
	chosen, err := chooseResources(kinds, kind)
	if err != nil {
		return nil
	}
	var all []choice
	for _, r := range chosen {
		var list struct {
			Items []metav1.PartialObjectMetadata
		}
		if err := p.fetch(ctx, r.path(namespace, ""), nil, "", &list); err != nil {
			return nil
		}
		for _, item := range list.Items {
			all = append(all, choice{word: item.Name})
		}
	}
	return all
}
