"""The simulator written down plainly: scalar loops, no closed form, double precision."""

import math

G = 9.80665


def speed_envelope(speed_mps, spacing_m, brake_mps2, end_mps=0.0):
    """Highest speed at each point from which everything ahead can still be met; backwards."""
    envelope = [end_mps] * (len(speed_mps) + 1)
    for i in range(len(speed_mps) - 1, -1, -1):
        reachable = math.sqrt(envelope[i + 1] ** 2 + 2 * brake_mps2 * spacing_m)
        envelope[i] = min(speed_mps[i], reachable)
    return envelope[:-1]


def between(values, x, spacing_m):
    """Linear interpolation at position ``x``; constant beyond the last point."""
    place = min(x / spacing_m, len(values) - 1)
    cell = min(int(place), len(values) - 2)
    return values[cell] + (place - cell) * (values[cell + 1] - values[cell])


def drive(aggressiveness, detour, length_m, speed_mps, slope_rad, constants):
    """Speed, acceleration, slope and engagement per time step, as lists."""
    length = detour * length_m
    spacing = length / (len(speed_mps) - 1)
    slope = [angle / detour for angle in slope_rad]
    limit = aggressiveness * constants.acceleration_ceiling_mps2
    brake = constants.brake_fraction * limit
    end = constants.end_speed_share * speed_mps[-1]
    envelope = speed_envelope(speed_mps, spacing, brake, end)
    squared = [speed**2 for speed in envelope]
    arrival = length - min(constants.arrival_tolerance_m, 0.5 * length)

    x, v, dt = 0.0, constants.start_speed_share * envelope[0], constants.time_step_s
    rows = []
    for _ in range(constants.n_times):
        remaining = max(length - x - v * dt, 0.0)
        reachable = end**2 + 2 * brake * remaining
        target = math.sqrt(min(max(between(squared, x, spacing), 0.0), reachable))
        fade = constants.acceleration_fade_mps
        upper = limit / (1 + v / fade) if fade > 0 else limit
        acceleration = min(max(constants.control_gain_per_s * (target - v), -limit), upper)
        if v > 0:
            engaged = min(max((arrival - x) / (v * dt), 0.0), 1.0)
        else:
            engaged = 1.0 if x < arrival else 0.0
        rows.append((v, acceleration, between(slope, x, spacing), engaged))
        x += v * dt
        v = max(v + acceleration * dt, 0.0)
    return [list(column) for column in zip(*rows, strict=True)]


def power(motion, coefficients, idle_power_w, constants):
    """Power from the tank per time step."""
    mass, c, b, a = coefficients
    trace = []
    for v, acceleration, angle, engaged in zip(*motion, strict=True):
        wheel = (acceleration + G * math.sin(angle)) * v * mass + c * v**3 + b * v**2 + a * v
        share = 1.0 / constants.tank_efficiency if wheel > 0 else constants.recuperation
        drawn = share * wheel
        trace.append(engaged * (drawn + idle_power_w))
    return trace


def drivetrain_power(motion, coefficients, idle_power_w, efficiency, recuperation, engine_on_w):
    """Power from the tank or battery per time step, by a drivetrain."""
    mass, c, b, a = coefficients
    trace = []
    for v, acceleration, angle, engaged in zip(*motion, strict=True):
        wheel = (acceleration + G * math.sin(angle)) * v * mass + c * v**3 + b * v**2 + a * v
        running = min(max((wheel - engine_on_w) / 2_000.0, 0.0), 1.0)
        drawn = running * (max(wheel, 0.0) / efficiency + idle_power_w)
        trace.append(engaged * (drawn + recuperation * min(wheel, 0.0)))
    return trace
