# METADATA
# title: No engine to go to
# description: |
#   Sheds half of the requests while no engine of the model tells how it is, and all of them while one is frozen or fails
#   every call: what finds out whether it lives again is the probe that Sluice lets through.
#   Where rules for nodes keep requests away from every live engine, there is none to go to.
# custom:
#   row: A2
#   reads: [readings]
#   optional: [readings.live, readings.frozen, readings.avoided]
package sluice.rules.liveness

# Share shed while no engine of the model is live (A2).
blind_shed := 0.5

default live := 0

live := input.readings.live

default frozen := 0

frozen := input.readings.frozen

shed contains blind_shed if {
	live == 0
	frozen == 0
}

shed contains 1 if {
	live == 0
	frozen > 0
}

shed contains 1 if {
	live > 0
	input.readings.avoided >= live
}
