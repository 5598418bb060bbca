package view

import v1 "k8s.io/api/core/v1"

// A PressureMessage contains the kubelet's texts for a state of a pressure condition.
type PressureMessage struct {
	Reason, Message string // texts of the condition
	EventReason     string // reason of the event for a change to this state
}

// pressureMessages contains two messages for each pressure condition: without pressure, and under
// pressure.
var pressureMessages = map[v1.NodeConditionType][2]PressureMessage{
	v1.NodeMemoryPressure: {
		{"KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"},
		{"KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"},
	},
	v1.NodeDiskPressure: {
		{"KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"},
		{"KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"},
	},
	v1.NodePIDPressure: {
		{"KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"},
		{"KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"},
	},
}

// PressureKinds are the pressure conditions in the order of the kubelet.
var PressureKinds = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// MessageForPressure returns the message of a pressure condition. exists reports whether the
// node is under this kind of pressure.
func MessageForPressure(kind v1.NodeConditionType, exists bool) PressureMessage {
	if exists {
		return pressureMessages[kind][1]
	}
	return pressureMessages[kind][0]
}
