-- compatible
-- Saved policies of agents; null where nothing is saved. They end with their project. Owner: store/agent-policies.ts.
create table agent_policies (
  project_uid text not null references projects (uid) on delete cascade,
  agent text not null,
  vision boolean,
  vision_describe boolean,
  vision_keep_images integer,
  revision bigint not null default 0,
  updated_at timestamptz not null default now(),
  primary key (project_uid, agent)
);
