package cli

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/client"
	"podd/server"
)

// choicesByKind maps each kind in a "complete" tag to the function that returns the choices of this
// kind. A function that reads the state of podd returns no choices if the user cannot connect to
// podd.
var choicesByKind = map[string]func(context.Context, *completer) []choice{
	"file":      func(context.Context, *completer) []choice { return []choice{fileNamesChoice} },
	"pod":       func(ctx context.Context, n *completer) []choice { return n.podChoices(ctx, "") },
	"podfile":   func(ctx context.Context, n *completer) []choice { return n.podChoices(ctx, ":") },
	"container": func(ctx context.Context, n *completer) []choice { return n.containerChoices(ctx) },
	"port":      func(ctx context.Context, n *completer) []choice { return n.portChoices(ctx) },
	"claim":     func(ctx context.Context, n *completer) []choice { return n.claimChoices(ctx) },
	"image":     func(ctx context.Context, n *completer) []choice { return n.imageChoices(ctx) },
	"namespace": func(ctx context.Context, n *completer) []choice { return n.listChoices(ctx, "namespaces", "") },
	"resource":  func(ctx context.Context, n *completer) []choice { return n.resourceChoices(ctx) },
	"object":    func(ctx context.Context, n *completer) []choice { return n.objectChoices(ctx) },
}

// A completer finds choices in the state of the running podd.
type completer struct {
	*commandLine
	view *server.View
}

// connect returns a Client, or nil if the user cannot connect to podd.
func (n *completer) connect(ctx context.Context) *client.Client {
	p, err := client.Flags{RunDir: cmp.Or(n.flags["run-dir"], os.Getenv("PODD_RUN_DIR"))}.Connect(ctx)
	if err != nil {
		return nil
	}
	return p
}

// fetchView returns the state of podd, or an empty state if the user cannot connect to podd.
func (n *completer) fetchView(ctx context.Context) *server.View {
	if n.view != nil {
		return n.view
	}
	n.view = &server.View{}
	if p := n.connect(ctx); p != nil {
		if v, err := p.FetchView(ctx); err == nil {
			n.view = v
		}
	}
	return n.view
}

// podChoices returns the names of pods. suffix is appended to each name.
func (n *completer) podChoices(ctx context.Context, suffix string) []choice {
	v := n.fetchView(ctx)
	s := PodSelector{Namespace: n.flags["namespace"]}
	var choices []choice
	for _, p := range v.Pods {
		if !s.includes(p.Pod.Namespace) {
			continue
		}
		podArg := podArgument(v, p.Key())
		switch {
		case s.Namespace != "":
			podArg = shortName(v, p.Pod.Name)
		case strings.Contains(n.prefix, "/"):
			podArg = displayName(v, p.Key())
		}
		choices = append(choices, choice{podArg + suffix, podCells(p, time.Now()).Status})
	}
	return choices
}

// selectedPod returns the first pod that an argument selects, or nil if no argument selects a pod.
func (n *completer) selectedPod(ctx context.Context) *server.PodView {
	for _, arg := range n.args {
		arg, _, _ = strings.Cut(arg, ":") // the argument of podd cp is POD:PATH
		if p, err := (PodSelector{Namespace: n.flags["namespace"]}).findPod(n.fetchView(ctx), arg); err == nil {
			return p
		}
	}
	return nil
}

// containerChoices returns the names of the containers of the selected pod.
func (n *completer) containerChoices(ctx context.Context) []choice {
	p := n.selectedPod(ctx)
	if p == nil {
		return nil
	}
	var choices []choice
	for _, c := range slices.Concat(p.Pod.Spec.InitContainers, p.Pod.Spec.Containers, ephemeralContainers(p.Pod)) {
		choices = append(choices, choice{c.Name, c.Image})
	}
	return choices
}

// portChoices returns the ports of the regular containers of the selected pod.
func (n *completer) portChoices(ctx context.Context) []choice {
	p := n.selectedPod(ctx)
	if p == nil {
		return nil
	}
	var choices []choice
	for _, c := range p.Pod.Spec.Containers {
		for _, port := range c.Ports {
			choices = append(choices, choice{strconv.Itoa(int(port.ContainerPort)), strings.TrimSpace(port.Name + " " + c.Name)})
		}
	}
	return choices
}

// claimChoices returns the PersistentVolumeClaims in the state of podd, as NAMESPACE/NAME.
func (n *completer) claimChoices(ctx context.Context) []choice {
	var choices []choice
	for _, c := range n.fetchView(ctx).Claims {
		choices = append(choices, choice{c.Claim.String(), c.Requested})
	}
	return choices
}

// imageChoices returns the names of the images on the node.
func (n *completer) imageChoices(ctx context.Context) []choice {
	p := n.connect(ctx)
	if p == nil {
		return nil
	}
	list, err := p.ListImages(ctx)
	if err != nil {
		return nil
	}
	var choices []choice
	for _, i := range list.Images {
		for _, name := range imageNames(i) {
			choices = append(choices, choice{name, formatSize(i.Bytes)})
		}
	}
	return choices
}

// resourceChoices returns the choices for the first argument of podd get. These are the resource
// types, or the objects of a type if the user has typed TYPE/. If the user has typed a list of
// types with commas, resourceChoices completes the last type.
func (n *completer) resourceChoices(ctx context.Context) []choice {
	if kind, name, ok := strings.Cut(n.prefix, "/"); ok {
		line := *n.commandLine
		line.prefix = name
		matching := (&completer{commandLine: &line}).choicesOfType(ctx, kind)
		for i := range matching {
			matching[i].text = kind + "/" + matching[i].text
		}
		return matching
	}
	p := n.connect(ctx)
	if p == nil {
		return nil
	}
	typedTypes := n.prefix[:strings.LastIndex(n.prefix, ",")+1]
	kinds, err := p.ListResources(ctx)
	if err != nil {
		return nil
	}
	var choices []choice
	addedNames := map[string]bool{}
	for _, r := range kinds {
		if !addedNames[r.Name] {
			addedNames[r.Name] = true
			choices = append(choices, choice{typedTypes + r.Name, strings.Join(r.ShortNames, ", ")})
		}
	}
	return choices
}

// objectChoices returns the names of the objects of the resource type in the first argument.
func (n *completer) objectChoices(ctx context.Context) []choice {
	if len(n.args) == 0 || strings.Contains(n.args[0], "/") {
		return nil
	}
	return n.choicesOfType(ctx, n.args[0])
}

// choicesOfType returns the names of the objects of a resource type.
func (n *completer) choicesOfType(ctx context.Context, kind string) []choice {
	switch kind {
	case "pods", "pod", "po":
		return n.podChoices(ctx, "")
	}
	return n.listChoices(ctx, kind, cmp.Or(n.flags["namespace"], metav1.NamespaceDefault))
}

// listChoices returns the names of the objects of a resource type. If namespace is "", it returns
// the names of the objects of all namespaces.
func (n *completer) listChoices(ctx context.Context, kind, namespace string) []choice {
	p := n.connect(ctx)
	if p == nil {
		return nil
	}
	kinds, err := p.ListResources(ctx)
	if err != nil {
		return nil
	}
	selected, err := chooseResources(kinds, kind)
	if err != nil {
		return nil
	}
	var choices []choice
	for _, r := range selected {
		var list struct {
			Items []metav1.PartialObjectMetadata
		}
		if err := p.Fetch(ctx, r.Path(namespace, ""), nil, "", &list); err != nil {
			return nil
		}
		for _, item := range list.Items {
			choices = append(choices, choice{text: item.Name})
		}
	}
	return choices
}
