package table

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/condition"
)

func podColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(),
		newColumn("Ready", "Number of ready containers, and of all regular containers and sidecars."),
		newColumn("Status", "Phase of the pod, or the reason why it or one of its containers is not running."),
		newColumn("Restarts", "Number of container restarts, and the time since the last one."),
		ageColumn(),
		newWideColumn("IP", fieldDescription(v1.PodStatus{}, "podIP")),
		newWideColumn("Node", fieldDescription(v1.PodSpec{}, "nodeName")),
		newWideColumn("Nominated Node", fieldDescription(v1.PodStatus{}, "nominatedNodeName")),
		newWideColumn("Readiness Gates", fieldDescription(v1.PodSpec{}, "readinessGates")),
	}
}

func podRow(p *v1.Pod, now time.Time) metav1.TableRow {
	cells, ip := NewPodCells(p, now), ""
	if len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	return metav1.TableRow{
		Cells: []any{
			p.Name, cells.Ready, cells.Status, cells.Restarts, cells.Age,
			valueOr(ip, none), valueOr(p.Spec.NodeName, none), valueOr(p.Status.NominatedNodeName, none), readinessGates(p),
		},
		Conditions: rowConditions(p.Status.Phase),
	}
}

// readinessGates returns the number of true readiness gates and the number of all readiness
// gates, such as "1/2".
func readinessGates(p *v1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return none
	}
	trueGates := 0
	for _, g := range p.Spec.ReadinessGates {
		if condition.IsTrue(p.Status.Conditions, g.ConditionType) {
			trueGates++
		}
	}
	return fmt.Sprintf("%d/%d", trueGates, len(p.Spec.ReadinessGates))
}

// rowConditions returns a condition for pods that have terminated, so that clients can show them
// differently or hide them.
func rowConditions(phase v1.PodPhase) []metav1.TableRowCondition {
	text := map[v1.PodPhase]string{v1.PodSucceeded: "The pod has completed.", v1.PodFailed: "The pod has failed."}[phase]
	if text == "" {
		return nil
	}
	return []metav1.TableRowCondition{{
		Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(phase), Message: text,
	}}
}
