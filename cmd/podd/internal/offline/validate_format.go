package offline

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"podd/cmd/podd/internal/printer"
	"podd/manifest"
)

// printYAML prints the pods as they would run, with the node name and all defaults.
func (r *resultPrinter) printYAML(w io.Writer) error {
	for i, p := range r.Pods {
		text, err := podYAML(p)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// podYAML returns a pod as YAML, without a status.
func podYAML(p *manifest.Pod) ([]byte, error) {
	pod := p.Object.DeepCopy()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	asJSON, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encoding pod %s: %w", p.Key, err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(asJSON, &tree); err != nil {
		return nil, fmt.Errorf("encoding pod %s: %w", p.Key, err)
	}
	delete(tree, "status") // the pod has never run
	if meta, ok := tree["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("encoding pod %s: %w", p.Key, err)
	}
	return text, nil
}

// problemJSON is a problem in the output of -o json.
type problemJSON struct {
	Severity manifest.Severity `json:"severity"`
	Path     string            `json:"path,omitempty"`
	Line     uint32            `json:"line,omitempty"`
	Column   uint32            `json:"column,omitempty"`
	Pod      string            `json:"pod,omitempty"` // namespace/name
	Field    string            `json:"field,omitempty"`
	Message  string            `json:"message"`
}

// podJSON is a valid pod in the output of -o json.
type podJSON struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	Line      int    `json:"line,omitempty"`
	Hash      string `json:"hash,omitempty"`
}

// printJSON prints the problems and the valid pods as one JSON object.
func (r *resultPrinter) printJSON(w io.Writer) error {
	errs, warnings := r.countProblems()
	out := struct {
		Files    int           `json:"files"`
		Errors   int           `json:"errors"`
		Warnings int           `json:"warnings"`
		Pods     []podJSON     `json:"pods"`
		Problems []problemJSON `json:"problems"`
	}{r.InputCount, errs, warnings, []podJSON{}, []problemJSON{}}
	for _, p := range r.Pods {
		out.Pods = append(out.Pods, podJSON{p.Key.Namespace, p.Key.Name, p.Origin.Path, p.Origin.Line, p.Hash})
	}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, problemJSON{
			p.Severity, p.Path, p.Position.Line, p.Position.Column, podName(p), p.FieldPath, p.Message,
		})
	}
	return printer.WriteJSON(w, out)
}

// podName returns the namespace and name of the pod of a problem, or "" if the problem concerns
// no pod.
func podName(p manifest.Problem) string {
	if p.Pod.Name == "" {
		return ""
	}
	return p.Pod.String()
}

// printGitHub prints workflow commands, which GitHub shows at the line of the file.
func (r *resultPrinter) printGitHub(w *strings.Builder) {
	for _, p := range r.Problems {
		at := ""
		if p.Path != "" {
			at += ",file=" + escapeGitHubProperty(p.Path)
		}
		if p.Position.Line > 0 {
			at += fmt.Sprintf(",line=%d", p.Position.Line)
		}
		if p.Position.Column > 0 {
			at += fmt.Sprintf(",col=%d", p.Position.Column)
		}
		text := p.Message
		if p.FieldPath != "" {
			text = p.FieldPath + ": " + text
		}
		command := "::" + string(p.Severity)
		if at != "" {
			command += " " + at[1:]
		}
		w.WriteString(command + "::" + escapeGitHubMessage(text) + "\n")
	}
}

// escapeGitHubMessage escapes a message, so that a manifest cannot inject workflow commands.
func escapeGitHubMessage(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// escapeGitHubProperty escapes a property of a workflow command.
func escapeGitHubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeGitHubMessage(s))
}
