// CPU time of a piece of work, which other work of the machine does not lengthen as it does the time on a clock.

/** CPU time that this process used while `work` ran. Units: milliseconds. */
export const cpuMsOf = (work: () => void): number => {
  const begin = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1_000;
};
